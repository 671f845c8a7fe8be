import path from 'node:path'
import {
  type AgentFile,
  convert as converted,
  DIALECTS,
  type ModelUse,
  modelUse,
  type Notice,
  readDefinition,
  validateDefinition,
} from '../../doors/recipe.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command/command.ts'
import { isModule } from '../definition/module-agent.ts'
import { asUsageError, noticeLine, noticeStyle } from '../definition/notices.ts'
import { type AgentFacts, moduleFacts } from '../explain/module-facts.ts'
import { hangingLines, oneLine } from '../terminal/clean.ts'
import { jsonLine, note, put, write, writeExactly } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'

/** Checks every file, even after a wrong one. The exit code tells programs whether any file was wrong. */
export async function validate(call: Call): Promise<number> {
  const paint = painter(process.stdout, call.env)
  let isWrong = false
  for (const file of call.words) {
    const { isRight, text } = isModule(file)
      ? await moduleVerdict(file, call, paint)
      : await fileVerdict(file, call, paint)
    isWrong ||= !isRight
    await write(text)
  }
  return isWrong ? EXIT.other : EXIT.completed
}

interface FileVerdict {
  readonly isRight: boolean
  readonly text: string
}

async function fileVerdict(file: string, call: Call, paint: Paint): Promise<FileVerdict> {
  const { agent, notices } = await validateDefinition(file, { mode: isSet(call, 'lenient') ? 'lenient' : 'strict' })
  const looked: CheckedFile = { file, agent, notices, use: agent === null ? null : modelUse(agent) }
  return { isRight: agent !== null, text: isSet(call, 'json') ? asJson(looked) : linesOf(looked, paint) }
}

async function moduleVerdict(file: string, call: Call, paint: Paint): Promise<FileVerdict> {
  const looked = await checkModule(file)
  return {
    isRight: looked.problem === null,
    text: isSet(call, 'json') ? moduleJson(looked) : moduleLine(looked, paint),
  }
}

interface CheckedFile {
  readonly file: string
  readonly agent: AgentFile | null
  readonly notices: readonly Notice[]
  readonly use: ModelUse | null
}

function asJson({ file, agent, notices, use }: CheckedFile): string {
  return jsonLine({
    file: path.resolve(file),
    ok: agent !== null,
    name: agent?.name ?? null,
    dialect: agent?.dialect ?? null,
    model: use?.name ?? null,
    modelTrouble: use?.trouble ?? null,
    notices,
  })
}

function linesOf({ file, agent, notices, use }: CheckedFile, paint: Paint): string {
  const style = noticeStyle(process.stdout, paint)
  const lines = notices.map((notice) => noticeLine(notice, shownPlace(notice.file, file), style))
  const verdict = agent === null ? '' : okLine(file, describeFile(agent, use), paint)
  return lines.join('') + verdict
}

function okLine(file: string, what: string, paint: Paint): string {
  const lines = hangingLines(`${oneLine(file)}: ok (${what})`, noticeStyle(process.stdout, paint).room)
  return `${lines.join('\n').replace(': ok (', () => `: ${paint('green', 'ok')} (`)}\n`
}

function describeFile({ dialect, name }: AgentFile, use: ModelUse | null): string {
  const model = use?.trouble ?? (use?.name == null ? '' : `model ${use.name}`)
  return oneLine(`${dialect}, ${name}${model === '' ? '' : `; ${model}`}`)
}

/** Shows the path as typed if it means the same file. */
function shownPlace(place: string, typed: string): string {
  return path.resolve(typed) === place ? typed : path.relative(process.cwd(), place) || place
}

interface CheckedModule {
  readonly file: string
  readonly agents: readonly AgentFacts[]
  /** The reason why the agents of a module cannot be used. */
  readonly problem: string | null
}

async function checkModule(file: string): Promise<CheckedModule> {
  try {
    return { file, agents: (await moduleFacts(file)).agents, problem: null }
  } catch (error) {
    if (error instanceof CliError) return { file, agents: [], problem: error.message }
    throw error
  }
}

function moduleJson({ file, agents, problem }: CheckedModule): string {
  const known = agents.map(({ name, model }) => ({ name, model: model.name, modelTrouble: model.trouble }))
  return jsonLine({ file: path.resolve(file), ok: problem === null, dialect: 'module', agents: known, problem })
}

function moduleLine({ file, agents, problem }: CheckedModule, paint: Paint): string {
  if (problem !== null) return `${oneLine(file)}: ${paint('red', 'error')}: ${oneLine(problem)}\n`
  const known = agents.map(
    ({ name, model }) =>
      `${name}; ${model.trouble ?? (model.name === null ? 'no model: its code answers' : `model ${model.name}`)}`,
  )
  return okLine(file, oneLine(`module, ${known.join(', ')}`), paint)
}

/** Writes the converted file to stdout, and losses and the target path to stderr. */
export async function convert(call: Call): Promise<number> {
  const [file = ''] = call.words
  const dialect = dialectOf(textOption(call, 'to'))
  const options = { folder: process.cwd(), lossy: isSet(call, 'lossy') }
  const agent = await readDefinition(file, { mode: 'lenient' }).catch(refuse)
  const { text, path, notices } = await converted(agent, dialect, options).catch(refuse)
  await writeExactly(text)
  const paint = painter(process.stderr, call.env)
  for (const notice of notices) put(process.stderr, noticeLine(notice, file, noticeStyle(process.stderr, paint)))
  if (process.stdout.isTTY) note(paint('dim', `Save the file as ${path}`))
  return EXIT.completed
}

function refuse(error: unknown): never {
  throw asUsageError(error)
}

function dialectOf(name: string | undefined): string {
  if (name !== undefined && DIALECTS.includes(name)) return name
  const known = DIALECTS.join(', ')
  if (name === undefined) throw new CliError(`missing --to: name one of ${known}.`, EXIT.usage)
  throw new CliError(`There is no dialect "${name}". There are ${known}.`, EXIT.usage)
}
