import path from 'node:path'
import type { Block } from '../../core/graph/content.ts'
import type { ChildSettings, Surface } from '../inline/spec.ts'
import { Arguments, invalid, readImages } from './arguments.ts'

/** A call to start a subagent, whichever tool it uses. */
export interface OpenCall {
  readonly surface: Surface
  /** The task, or further instructions for the source. */
  readonly instructions: string | null
  readonly source: string | null
  readonly parameters: Readonly<Record<string, unknown>>
  /** The child's extensions; null: all of the host's. */
  readonly extensions: readonly string[] | null
  readonly settings: ChildSettings
  /** Whether the host gets only its last message, rather than everything it said and found. */
  readonly summary: boolean
  readonly images: readonly Block[]
  /** Reference material. */
  readonly context: string | null
  readonly isBackground: boolean
  /** A folder of the runtime's files. */
  readonly cwd: string | null
  /** A title of the child, for people. */
  readonly title: string | null
}

/** Reads the arguments of a call. Throws an OpenRefusal in the words of its surface. */
export function readOpenCall(surface: Surface, given: unknown, isSource: (name: string) => boolean): OpenCall {
  const args = new Arguments(given)
  if (surface === 'Agent') return readAgent(args, isSource)
  return surface === 'delegate' ? readDelegate(args) : readSubagent(args)
}

function readSubagent(args: Arguments): OpenCall {
  const settings = args.object('settings')
  const call: OpenCall = {
    ...NOTHING,
    surface: 'subagent',
    instructions: args.text('instructions'),
    source: args.text('subrecipe'),
    parameters: args.object('parameters')?.fields ?? {},
    extensions: args.texts('extensions'),
    settings: settings === null ? {} : settingsIn(settings),
    summary: args.flag('summary') ?? true,
    images: readImages(args.list('images')),
  }
  if (call.instructions === null && call.source === null) {
    invalid("Must provide 'instructions' or 'subrecipe' (or both)")
  }
  if (args.has('parameters') && call.source === null) invalid("'parameters' can only be used with 'subrecipe'")
  return call
}

function readDelegate(args: Arguments): OpenCall {
  const call: OpenCall = {
    ...NOTHING,
    surface: 'delegate',
    instructions: args.text('instructions'),
    source: args.text('source'),
    parameters: args.object('parameters')?.fields ?? {},
    extensions: args.texts('extensions'),
    settings: settingsIn(args),
    context: args.text('context'),
    isBackground: args.flag('async') ?? false,
  }
  if (call.instructions === null && call.source === null) invalid("Must provide 'instructions' or 'source' (or both)")
  if (args.has('parameters') && call.source === null) invalid("'parameters' can only be used with 'source'")
  return call
}

const UNSUPPORTED = ['team_name', 'mode', 'isolation']

function readAgent(args: Arguments, isSource: (name: string) => boolean): OpenCall {
  args.refuseUnknown(AGENT_KEYS)
  const description = required(args, 'description')
  const prompt = required(args, 'prompt')
  if (args.flag('run_in_background') === true) {
    invalid('run_in_background is not supported in the current runtime; omit it or pass false')
  }
  for (const key of UNSUPPORTED) if (args.has(key)) invalid(`${key} is not supported in the current runtime`)
  const type = args.text('subagent_type')
  const isNamed = type !== null && isSource(type)
  const model = args.text('model')
  return {
    ...NOTHING,
    surface: 'Agent',
    instructions: type === null || isNamed ? prompt : `Specialized agent hint: ${type}\n\n${prompt}`,
    source: isNamed ? type : null,
    settings: model === null ? {} : { model },
    images: readImages(args.list('images')),
    cwd: readCwd(args.text('cwd')),
    title: args.text('name') ?? description,
  }
}

const AGENT_KEYS = [
  ...['description', 'prompt', 'subagent_type', 'model', 'run_in_background', 'name', 'team_name', 'mode'],
  ...['isolation', 'cwd', 'images'],
]

const NOTHING: OpenCall = {
  surface: 'subagent',
  instructions: null,
  source: null,
  parameters: {},
  extensions: null,
  settings: {},
  summary: true,
  images: [],
  context: null,
  isBackground: false,
  cwd: null,
  title: null,
}

function required(args: Arguments, key: string): string {
  if (!args.has(key)) invalid(`Invalid parameters: missing field \`${key}\``)
  return args.text(key) ?? invalid(`${key} cannot be empty`)
}

function settingsIn(args: Arguments): ChildSettings {
  const provider = args.text('provider')
  const model = args.text('model')
  const temperature = args.number('temperature')
  const maxTurns = args.number('max_turns')
  if (maxTurns !== null && maxTurns < 1) invalid("'max_turns' must be at least 1")
  if (maxTurns !== null && (!Number.isInteger(maxTurns) || maxTurns > MOST_TURNS)) {
    invalid(`max_turns must be between 1 and ${MOST_TURNS} (got ${maxTurns})`)
  }
  return {
    ...(provider === null ? {} : { provider }),
    ...(model === null ? {} : { model }),
    ...(temperature === null ? {} : { temperature }),
    ...(maxTurns === null ? {} : { maxTurns }),
  }
}

const MOST_TURNS = 4_294_967_295

function readCwd(given: string | null): string | null {
  return given === null || path.isAbsolute(given) ? given : invalid('cwd must be an absolute path')
}
