import path from 'node:path'
import { ownFile } from '../../core/base/system/own-files.ts'
import {
  type Definition,
  discover,
  type ModelUse,
  modelUse,
  type Notice,
  validateDefinition,
} from '../../doors/recipe.ts'
import { diskFiles } from '../../doors/tools.ts'
import { isLegateError } from '../../index.ts'
import { isPostgresUrl } from '../../stores/postgres/index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command/command.ts'
import { isTold, noticeLine, noticeStyle } from '../definition/notices.ts'
import { exposedFiles } from '../serve/exposed-files.ts'
import { shownStore, storePath, withRuntime } from '../store/open-store.ts'
import { plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'
import { cut, pad, widthOf } from '../terminal/width.ts'

/** A definition with everything there is to report about it. */
interface CheckedDefinition extends Definition {
  readonly isUsable: boolean
  readonly model: ModelUse | null
}

/** Lists every definition a run in this folder would find, how it was read, and its problems. */
export async function doctor(call: Call): Promise<number> {
  const { definitions, notices: found } = await discover({ env: call.env })
  const notices = [...found, ...(await storeNotices(call))]
  const looked = await Promise.all(definitions.map(checkDefinition))
  const store = textOption(call, 'store') === undefined ? undefined : await checkStore(call)
  const isWrong =
    notices.some(({ level }) => level === 'error') ||
    looked.some(({ isUsable }) => !isUsable) ||
    (store !== undefined && store.problem !== null)
  if (isSet(call, 'json')) {
    for (const one of looked) await write(jsonLine(one))
    for (const notice of notices) await write(jsonLine({ notice }))
    if (store !== undefined) await write(jsonLine({ store }))
    return isWrong ? EXIT.other : EXIT.completed
  }
  await write(page(looked, notices, { paint: painter(process.stdout, call.env), isWhole: isSet(call, 'all') }))
  if (store !== undefined) await write(storeText(store, painter(process.stdout, call.env)))
  return isWrong ? EXIT.other : EXIT.completed
}

/** The files of the runtime in this folder, where agents of files work. */
async function storeNotices(call: Call): Promise<Notice[]> {
  if (process.platform === 'win32') return []
  const store = usualStore(call)
  if (store !== undefined && !isPostgresUrl(store)) ownFile(store, 'the store')
  const exposed = await exposedFiles(diskFiles({ workspace: process.cwd() }))
  return exposed.map(({ place, message, hint }) => {
    return { level: 'warning', code: 'runtime_file', message, hint, file: place, line: null }
  })
}

/** The findings of a look at a store. */
interface CheckedStore {
  readonly place: string
  /** Null where it could not be opened. */
  readonly kind: string | null
  readonly openRuns: number | null
  /** How many living processes work on it. */
  readonly processes: number | null
  /** Why it could not be read; null where it could. */
  readonly problem: string | null
}

/** Opens the store that was named, and changes nothing in it. */
async function checkStore(call: Call): Promise<CheckedStore> {
  const place = shownStore(call)
  try {
    return await withRuntime(call, 'read', async (runtime) => {
      const open = await runtime.store.openRoots({ limit: Number.MAX_SAFE_INTEGER })
      const processes = (await runtime.processes()).filter(({ isAlive }) => isAlive)
      const { name: kind } = runtime.store
      return { place, kind, openRuns: open.length, processes: processes.length, problem: null }
    })
  } catch (error) {
    if (!(error instanceof CliError) && !isLegateError(error)) throw error
    return { place, kind: null, openRuns: null, processes: null, problem: error.message }
  }
}

const KINDS: Readonly<Record<string, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL', json: 'JSON' }

function storeText({ place, kind, openRuns, processes, problem }: CheckedStore, paint: Paint): string {
  const what = `store ${oneLine(place)}`
  if (problem !== null) return `${what}: ${paint('red', 'error')}: ${oneLine(problem)}\n`
  const alive = processes === 1 ? '1 process works on it' : `${processes} processes work on it`
  return `${what}: ${KINDS[kind ?? ''] ?? oneLine(kind ?? '')}, ${plural(openRuns ?? 0, 'open run')}, ${alive}\n`
}

/** Undefined where commands use a server, or no store that can be meant. */
function usualStore(call: Call): string | undefined {
  try {
    return storePath(call)
  } catch {
    return undefined
  }
}

/** Reads a definition completely; the list itself needs only part of a recipe. */
async function checkDefinition(definition: Definition): Promise<CheckedDefinition> {
  const { agent, notices } = await validateDefinition(definition.file)
  return { ...definition, isUsable: agent !== null, model: agent === null ? null : modelUse(agent), notices }
}

interface ReportStyle {
  readonly paint: Paint
  readonly isWhole: boolean
}

const NOTHING = 'There are no recipes and no agent files here, nor in your home folder.'
const COLUMNS = ['NAME', 'DIALECT', 'FROM', 'MODEL', 'FILE'] as const

function page(looked: readonly CheckedDefinition[], notices: readonly Notice[], look: ReportStyle): string {
  const { paint } = look
  const style = noticeStyle(process.stdout, paint)
  const broken = notices.map((notice) => noticeLine(notice, shownPath(notice.file), style))
  if (looked.length === 0 && notices.every(({ code }) => code === 'runtime_file'))
    return `${NOTHING}\n${broken.join('')}`
  const rows = looked.map((one) => [
    oneLine(one.name),
    one.dialect,
    one.scope,
    oneLine(one.model?.name ?? '-'),
    shownPath(one.file),
  ])
  const widths = COLUMNS.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => Math.min(40, widthOf(row[at] ?? '')))),
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => (at === COLUMNS.length - 1 ? cell : pad(cut(cell, widths[at] ?? 0), widths[at] ?? 0)))
      .join('  ')
  const table = looked.map(
    (one, at) => `${cut(line(rows[at] ?? []), outputColumns() - 1)}${stateOf(one, paint)}\n${remarks(one, look)}`,
  )
  return `${paint('dim', line(COLUMNS))}\n${table.join('')}${broken.length === 0 ? '' : '\n'}${broken.join('')}\n${modelTroubles(looked, paint)}${summary(looked, notices)}`
}

function stateOf({ isUsable, shadowedBy }: CheckedDefinition, paint: Paint): string {
  if (!isUsable) return `  ${paint('red', 'cannot be used')}`
  return shadowedBy === null ? '' : `  ${paint('yellow', `shadowed by ${shownPath(shadowedBy)}`)}`
}

/** Formats the notices of a definition. Notes that leave nothing out appear only if everything is asked for (`isWhole`). */
function remarks({ notices, file }: CheckedDefinition, { paint, isWhole }: ReportStyle): string {
  const style = noticeStyle(process.stdout, paint)
  const indented = { ...style, room: { ...style.room, from: 2 } }
  return notices
    .filter((notice) => isWhole || isTold(notice))
    .map(
      (notice) =>
        `  ${noticeLine(notice, notice.file === file ? path.basename(file) : shownPath(notice.file), indented)}`,
    )
    .join('')
}

/** Lists each problem that makes models unusable, once, with the definitions affected. */
function modelTroubles(looked: readonly CheckedDefinition[], paint: Paint): string {
  const names = new Map<string, Set<string>>()
  for (const { name, model } of looked) {
    if (model?.trouble) names.set(model.trouble, new Set([...(names.get(model.trouble) ?? []), oneLine(name)]))
  }
  return [...names]
    .map(([trouble, who]) => `${paint('yellow', 'model')}: ${oneLine(trouble)} (${listed([...who])})\n`)
    .join('')
}

const NAMED = 5

function listed(names: readonly string[]): string {
  const more = names.length - NAMED
  return names.slice(0, NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function summary(looked: readonly CheckedDefinition[], notices: readonly Notice[]): string {
  const broken =
    looked.filter(({ isUsable }) => !isUsable).length + notices.filter(({ level }) => level === 'error').length
  const shadowed = looked.filter(({ shadowedBy }) => shadowedBy !== null).length
  const more = [...(shadowed === 0 ? [] : [`${shadowed} shadowed`]), ...(broken === 0 ? [] : [`${broken} broken`])]
  return `${[plural(looked.length, 'definition'), ...more].join(', ')}\n`
}

function shownPath(file: string): string {
  const relative = path.relative(process.cwd(), file)
  return oneLine(relative.startsWith('..') || relative === '' ? file : relative)
}
