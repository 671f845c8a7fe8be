import {
  type AgentFile,
  type ExtensionConfig,
  extensionSources,
  type ModelUse,
  modelUse,
  projectFiles,
  shownExtension,
} from '../../doors/recipe.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command/command.ts'
import { rootGrant } from '../definition/call-grant.ts'
import { inputFor } from '../definition/input.ts'
import { agentOf, compatOf, loadFor, refuseFileOptions, tellsProject } from '../definition/load.ts'
import { isModule } from '../definition/module-agent.ts'
import { printNotices, relativePath } from '../definition/notices.ts'
import { explainModule } from '../explain/explain-module.ts'
import { type CostBound, costBound, type FirstRequest, firstRequest, showParameters } from '../explain/first-request.ts'
import { factLines, grantLines, modelText, section } from '../explain/module-facts.ts'
import { duration, money } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'
import { cut } from '../terminal/width.ts'
import { contentWords } from '../watch/words.ts'

/** Shows everything a run of a file starts with, without calling a model; for a module, the facts about its agents. */
export async function explain(call: Call): Promise<number> {
  const [file = ''] = call.words
  if (isModule(file)) {
    refuseFileOptions(call)
    return explainModule(call, file)
  }
  if (textOption(call, 'agent') !== undefined) {
    throw new CliError('--agent is for a module: legate explain agents.js --agent NAME.', EXIT.usage)
  }
  const compat = compatOf(call)
  await showParameters(call)
  const definition = await loadFor(call)
  printNotices(definition, call.env)
  const use = modelUseFor(definition, textOption(call, 'model'))
  const model = use.name
  const asked = askable(definition, call)
  const agent = await agentOf(withoutServers(model === null ? modelless(asked) : asked), {
    ...(model === null ? {} : { model }),
    ...compat,
    projectFiles: tellsProject(call),
    grant: { named: definition },
  })
  const project = tellsProject(call) ? (await projectFiles(definition)).files.map(({ file }) => file) : []
  const first = await firstRequest(agent, await inputFor(asked, call))
  const sight: FileFacts = { definition, use, first, project, bound: costBound(model, first) }
  await write(isSet(call, 'json') ? jsonLine(asJson(sight)) : asText(sight, painter(process.stdout, call.env)))
  return first.request === null ? EXIT.other : EXIT.completed
}

const NOTHING_ASKED = '(what you ask it)'

/**
 * Fills in a prompt so that you can see the instructions without inventing a question; an agent that takes JSON is
 * shown as if it took text.
 */
function askable(definition: AgentFile, { words }: Call): AgentFile {
  if (words.length > 1 || (definition.prompt !== null && definition.input === null)) return definition
  return { ...definition, prompt: NOTHING_ASKED, input: null }
}

/** Removes MCP servers: looking at a file starts no program and contacts no host, so their tools stay unknown. */
function withoutServers(definition: AgentFile): AgentFile {
  if (definition.extensions === null) return definition
  const here = definition.extensions.filter(({ type }) => type !== 'stdio' && type !== 'streamable_http')
  return { ...definition, extensions: here }
}

/** Replaces an unknown model, so that the rest of the file can still be shown. */
function modelless(definition: AgentFile): AgentFile {
  return { ...definition, model: null, provider: null }
}

interface FileFacts {
  readonly definition: AgentFile
  readonly use: ModelUse
  readonly first: FirstRequest
  readonly bound: CostBound
  /** The files of the project that it is told. */
  readonly project: readonly string[]
}

function modelUseFor(definition: AgentFile, named: string | undefined): ModelUse {
  if (named === undefined) return modelUse(definition)
  return { ...modelUse({ ...definition, model: named, provider: null }), where: '--model' }
}

function asJson({ definition, use, first, bound, project }: FileFacts): object {
  const { request, limits, spend, trouble } = first
  return {
    file: definition.file,
    name: definition.name,
    dialect: definition.dialect,
    model: use.name,
    modelTrouble: use.trouble,
    system: systemOf(first),
    messages: (request?.messages ?? []).filter(({ role }) => role !== 'system'),
    tools: request?.tools ?? [],
    settings: request?.settings ?? definition.settings,
    outputSchema: request?.outputSchema ?? null,
    grant: { root: rootGrant({ named: definition }), file: definition.grant },
    limits: { ...limits, ...(spend?.limit ?? {}) },
    costBound: bound,
    extensions: definition.extensions?.map(shownExtension) ?? null,
    hooks: definition.hooks,
    memory: definition.memory,
    projectFiles: project,
    trouble,
  }
}

function asText(sight: FileFacts, paint: Paint): string {
  const { definition, use, first, bound, project } = sight
  const { limits, request, trouble } = first
  const rows: readonly (readonly [string, string])[] = [
    ['file', `${relativePath(definition.file)} (${definition.dialect})`],
    ['model', modelText(use)],
    ['settings', JSON.stringify(request?.settings ?? definition.settings)],
    ['limits', limitsText(limits)],
    ['cost', bound.usd === null ? `no bound: ${bound.how}` : `at most ${money(bound.usd)}: ${bound.how}`],
    ...(project.length === 0 ? [] : [['project', project.map(relativePath).join(', ')] as const]),
    ...(definition.memory === null ? [] : [['memory', memoryText(definition.memory)] as const]),
  ]
  const facts = factLines(rows, paint)
  return [
    `${paint('bold', oneLine(definition.name))}\n${facts}`,
    section('Grant of the command line', grantLines(rootGrant({ named: definition })), paint),
    section('Grant of the file, which narrows it', grantLines(definition.grant ?? {}), paint),
    section(`Tools (${request?.tools.length ?? 0})`, toolLines(first), paint),
    section('Extensions', extensionLines(definition), paint),
    section('Hooks', hookLines(definition), paint),
    section('System prompt', systemOf(first), paint),
    section('First message', userOf(first), paint),
    section('It would fail before that', trouble ?? '', paint),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

/** Shows limits under the names that a budget gives them: `turns 25, toolCalls 1000, ..., wallMs 1d 0h`. */
function limitsText(limits: FirstRequest['limits']): string {
  const text = (name: string, limit: number) => (name.endsWith('Ms') ? duration(limit) : String(limit))
  return Object.entries(limits)
    .map(([name, limit]) => `${name} ${text(name, limit)}`)
    .join(', ')
}

function toolLines({ request }: FirstRequest): string {
  const tools = request?.tools ?? []
  const width = Math.min(32, Math.max(0, ...tools.map(({ name }) => name.length)))
  return tools
    .map(({ name, description }) => cut(`${name.padEnd(width)}  ${oneLine(description)}`, outputColumns() - 3))
    .join('\n')
}

function memoryText(memory: NonNullable<AgentFile['memory']>): string {
  return memory === 'user' ? 'of its own, in every project' : 'of its own, in this project'
}

function hookLines({ hooks }: AgentFile): string {
  return hooks
    .map(({ event, matcher, command, args, seconds }) => {
      const program = [command, ...(args ?? [])].join(' ')
      return oneLine(`${event}${matcher === '' ? '' : ` of ${matcher}`}: ${program} (at most ${seconds} s)`)
    })
    .join('\n')
}

const LATER = ' (its tools are known when it runs)'

function extensionLines({ extensions }: AgentFile): string {
  return (extensions ?? [])
    .map(shownExtension)
    .map((extension) => {
      const { type, name } = extension
      const secrets = secretText(extension)
      if (extension.type === 'stdio') {
        return `${name}: starts ${[extension.cmd, ...extension.args].join(' ')}${secrets}${LATER}`
      }
      if (extension.type === 'streamable_http') return `${name}: reaches ${extension.uri}${secrets}${LATER}`
      return `${name} (${type})`
    })
    .map(oneLine)
    .join('\n')
}

/** Lists the secrets that a server would get: each is a request of its own. */
function secretText(extension: ExtensionConfig): string {
  const names = Object.values(extensionSources([extension]).sources).flatMap(({ secrets }) => secrets)
  return names.length === 0 ? '' : ` and gets ${names.map((name) => `secret:${name}`).join(', ')}`
}

function systemOf({ request }: FirstRequest): string {
  return (request?.messages ?? [])
    .flatMap((message) => (message.role === 'system' ? [message.content] : []))
    .join('\n\n')
}

function userOf({ request }: FirstRequest): string {
  const asked = (request?.messages ?? []).find(({ role }) => role === 'user')
  return asked === undefined ? '' : contentWords(asked.content)
}
