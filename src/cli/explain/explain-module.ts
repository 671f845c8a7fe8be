import path from 'node:path'
import type { Grant } from '../../index.ts'
import { type Call, EXIT, isSet, textOption } from '../command/command.ts'
import { relativePath } from '../definition/notices.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'
import { cut } from '../terminal/width.ts'
import {
  type AgentFacts,
  factLines,
  grantLines,
  type ModuleFacts,
  modelText,
  moduleFacts,
  section,
  type ToolFacts,
} from './module-facts.ts'

/** Shows the facts about the agents of a module that can be read from the code: it runs, starts and asks nothing. */
export async function explainModule(call: Call, file: string): Promise<number> {
  const sight = await moduleFacts(file, { agent: textOption(call, 'agent'), model: textOption(call, 'model') })
  if (isSet(call, 'json')) {
    for (const agent of sight.agents) await write(asJson(agent, sight.grant, file))
    return EXIT.completed
  }
  const paint = painter(process.stdout, call.env)
  const [only, other] = sight.agents
  if (only !== undefined && other === undefined) await write(wholeOf(only, file, sight, paint))
  else await write(listOf(sight, file, paint))
  return EXIT.completed
}

function asJson(agent: AgentFacts, grant: Grant | null, file: string): string {
  const { model, grant: own, ...rest } = agent
  const { name, trouble } = model
  return jsonLine({
    file: path.resolve(file),
    ...rest,
    model: name,
    modelTrouble: trouble,
    grant: { runtime: grant, agent: own },
  })
}

function wholeOf(agent: AgentFacts, file: string, sight: ModuleFacts, paint: Paint): string {
  const facts: readonly (readonly [string, string])[] = [
    ['module', relativePath(path.resolve(file))],
    ['about', agent.description],
    ['model', modelText(agent.model) || CODE],
    ['settings', JSON.stringify(agent.settings)],
    ['budget', agent.budget === null ? 'the usual limits' : JSON.stringify(agent.budget)],
    ['takes', agent.input === null ? 'words' : JSON.stringify(agent.input)],
    ['gives', agent.output === null ? 'words' : JSON.stringify(agent.output)],
  ]
  return [
    `${paint('bold', oneLine(agent.name))}\n${factLines(facts, paint)}`,
    section('Grant of the module, for all of its agents', grantLines(sight.grant ?? {}), paint),
    section('Grant of the agent', ownGrant(agent), paint),
    section(`Tools (${agent.tools.length})`, toolLines(agent.tools), paint),
    section('Subagents', subagentLines(agent), paint),
    section('Servers', sourceLines(agent), paint),
    section('Instructions', agent.instructions, paint),
    section('First message', agent.prompt ?? '', paint),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

function listOf({ agents, grant }: ModuleFacts, file: string, paint: Paint): string {
  const head = `${oneLine(file)} has ${agents.length} agents; --agent NAME shows one in full.\n`
  const shared = section('Grant of the module, for all of its agents', grantLines(grant ?? {}), paint)
  return [head, ...(shared === '' ? [] : [shared]), ...agents.map((agent) => shortOf(agent, paint))].join('\n')
}

function shortOf(agent: AgentFacts, paint: Paint): string {
  const { tools, subagents, sources } = agent
  const facts: readonly (readonly [string, string])[] = [
    ['about', agent.description],
    ['model', modelText(agent.model) || CODE],
    ['tools', tools.map((tool) => `${tool.name}${MARKS[tool.verdict]}`).join(', ')],
    ['subagents', subagents.map(({ tool, agent: name }) => (name === null ? tool : `${tool} (${name})`)).join(', ')],
    ['servers', sources.map(({ name }) => name).join(', ')],
    ['grant', ownGrant(agent).replaceAll(/ +/g, ' ').replaceAll('\n', '; ')],
  ]
  return `${paint('bold', oneLine(agent.name))}\n${factLines(facts, paint)}`
}

const MARKS: Readonly<Record<ToolFacts['verdict'], string>> = { allow: '', ask: ' (asks)', deny: ' (denied)' }

function ownGrant({ grant }: AgentFacts): string {
  return grant === null ? NO_GRANT : grantLines(grant)
}

const CODE = 'none: its code answers'
const NO_GRANT = 'none: its tools, agents and models; no files, programs, hosts or secrets'

function toolLines(tools: readonly ToolFacts[]): string {
  const width = Math.min(32, Math.max(0, ...tools.map(({ name }) => name.length)))
  return tools
    .flatMap(({ name, description, verdict, reason }) => [
      cut(`${name.padEnd(width)}  ${oneLine(description)}`, outputColumns() - 3),
      ...(verdict === 'allow'
        ? []
        : [`${' '.repeat(width)}  ${verdict === 'ask' ? 'asks' : 'denied'}: ${oneLine(reason)}`]),
    ])
    .join('\n')
}

function subagentLines({ subagents }: AgentFacts): string {
  return subagents
    .map(({ tool, agent, description }) =>
      oneLine([`${tool}: ${agent ?? 'known when it starts'}`, ...(description === '' ? [] : [description])].join(', ')),
    )
    .join('\n')
}

function sourceLines({ sources }: AgentFacts): string {
  return sources
    .map(({ name, needs }) => oneLine(`${name}: ${needs.join(', ')} (its tools are known when it runs)`))
    .join('\n')
}
