import { createReadStream, existsSync, rmSync } from 'node:fs'
import { type Conversation, look } from '../../../doors/rows.ts'
import type { Id } from '../../../index.ts'
import { isPostgresUrl } from '../../../stores/postgres/index.ts'
import { type Call, CliError, EXIT, isSet } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import type { Desk } from '../../desk/desk.ts'
import { shownId } from '../../store/find-run.ts'
import { serverNamed, withDesk } from '../../store/open-desk.ts'
import { storePath } from '../../store/open-store.ts'
import { plural } from '../../terminal/amounts.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'

/** Imports a tree from a file or from stdin; creates the store if there is none. Its open runs wait until somebody resumes them. */
export async function importRun(call: Call): Promise<number> {
  const [file = '-'] = call.words
  const store = serverNamed(call) === undefined ? storePath(call) : undefined
  const isNew = store !== undefined && !isPostgresUrl(store) && !existsSync(store)
  const goOn = isSet(call, 'go-on')
  let isImported = false
  try {
    return await withDesk(call, 'make', async (desk) => {
      const found: OpenRuns = new Set()
      const rootId = await desk.import(noting(linesOf(file), found), { goOn })
      isImported = true
      const [turn] = await look(desk.store, rootId, (tree) => tree.turnsOf(rootId, { limit: 1 }))
      const id = shownId(turn?.id ?? rootId)
      const open = await openRuns(desk, rootId, found)
      const told = `Imported: ${id}. ${legate(`show ${id}`)}\n${openLines(open, goOn)}`
      await write(isSet(call, 'json') ? jsonLine({ rootId, runId: turn?.id ?? null, open, goOn }) : told)
      return EXIT.completed
    })
  } finally {
    // A store that was made for this import alone is not left behind empty.
    if (isNew && !isImported) for (const ending of ['', '-wal', '-shm']) rmSync(store + ending, { force: true })
  }
}

/** The ids of the runs that were open where the tree was exported. */
type OpenRuns = Set<Id>

/** Gives the lines on, and notes which runs are open in them. */
async function* noting(lines: AsyncIterable<string>, found: OpenRuns): AsyncGenerator<string> {
  for await (const line of lines) {
    if (line.startsWith('["row","t",') && !line.includes('"state":"ended"')) {
      const [, id] = /"turn":"([0-9a-f-]{36})"/.exec(line) ?? []
      if (id !== undefined) found.add(id)
    }
    yield line
  }
}

/** A run that was open, and what it may do beside what the code of its agent allows. */
interface OpenRun {
  readonly runId: Id
  readonly agent: string
  readonly may: readonly string[]
  readonly starts: readonly string[]
}

async function openRuns({ store }: Desk, rootId: Id, found: OpenRuns): Promise<readonly OpenRun[]> {
  return look(store, rootId, (tree) =>
    [...found].flatMap((runId) => {
      const conversation = tree.conversation(tree.turn(runId)?.conversationId ?? '')
      return conversation === undefined ? [] : { runId, agent: conversation.agent.name, ...rightsOf(conversation) }
    }),
  )
}

/** The name and the text of the definition in a row. The tree comes from somebody else, so the row may hold anything. */
function rightsOf({ agent: { inline } }: Conversation): Pick<OpenRun, 'may' | 'starts'> {
  const grant = Object(Reflect.get(Object(inline), 'grant'))
  const extensions: unknown = Reflect.get(Object(inline), 'extensions')
  const starts = Array.isArray(extensions) ? extensions.map(commandOf).filter((line) => line !== '') : []
  return { may: textsOf(Reflect.get(grant, 'use')), starts }
}

function commandOf(extension: unknown): string {
  const cmd: unknown = Reflect.get(Object(extension), 'cmd')
  return typeof cmd === 'string' ? [cmd, ...textsOf(Reflect.get(Object(extension), 'args'))].join(' ') : ''
}

function textsOf(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : []
}

function openLines(open: readonly OpenRun[], goOn: boolean): string {
  if (open.length === 0) return ''
  const how = goOn ? 'goes on' : 'was stopped'
  const lines = open.map((run) => {
    const may = run.may.length === 0 ? '' : `; it may use ${oneLine(run.may.join(', '))}`
    const starts = run.starts.length === 0 ? '' : `; it starts ${oneLine(run.starts.join(' and '))}`
    return `  ${oneLine(run.agent)} ${shownId(run.runId)} ${how}${may}${starts}\n`
  })
  const [first] = open
  const next = goOn || first === undefined ? '' : `To let one go on: ${legate(`resume ${shownId(first.runId)}`)}\n`
  return `${plural(open.length, 'run')} of it ${open.length === 1 ? 'was' : 'were'} open:\n${lines.join('')}${next}`
}

/** More characters than any line of an export has. */
const MOST_OF_LINE = 16_000_001

/** The lines of a file. Where one is too long, its beginning is given, which the import refuses with the number of the line. */
async function* linesOf(file: string): AsyncGenerator<string> {
  const input = file === '-' ? process.stdin.setEncoding('utf8') : createReadStream(file, 'utf8')
  let begun: string[] = []
  let size = 0
  try {
    for await (const part of input) {
      const [first = '', ...others] = String(part).split('\n')
      begun.push(first)
      size += first.length
      const last = others.pop()
      if (last !== undefined) {
        yield begun.join('')
        yield* others
        begun = [last]
        size = last.length
      }
      if (size >= MOST_OF_LINE) break
    }
    if (size > 0) yield begun.join('')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new CliError(`There is no file ${file}.`, EXIT.usage)
    throw new CliError(`Cannot read ${file}: ${message}`, EXIT.usage)
  }
}
