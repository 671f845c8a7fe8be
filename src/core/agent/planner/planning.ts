import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import type { Node } from '../../graph/rows.ts'
import type { Model, ModelRequest } from '../../model/model.ts'
import { Prompt, promptFromSlots, slotsOf } from '../../prompt/prompt.ts'
import type { PlanContext, PlannerSettings } from '../definition/planner-settings.ts'
import type { NodeRun } from '../hooks/node-run.ts'
import { buildRequest } from '../request/build-request.ts'
import { PLAN_SHAPE, PLANS_SHAPE } from './plan-reader.ts'
import { actionResults } from './tool-logs.ts'

export { failedPlan, PlanReader, readCommands } from './plan-reader.ts'
export { toolLogs } from './tool-logs.ts'

/** The planner's decision about a node's model call; null where the model calls tools itself. */
export type Planning =
  | { readonly step: 'answer'; readonly request: ModelRequest }
  | {
      readonly step: 'judge'
      readonly request: ModelRequest
      readonly settings: PlannerSettings
      readonly due: PlanningRound
    }
  | null

/** A round of planning. */
export interface PlanningRound {
  readonly context: Omit<PlanContext, 'signal'>
  /** How long the planned calls may take; null for no limit. */
  readonly leftMs: number | null
}

/** Uses the rows alone: a process that continues the run decides the same. */
export function planningOf(run: NodeRun, model: Model): Planning {
  const settings = run.hooks?.planner ?? null
  if (settings === null || settings.strategy === 'native') return null
  if (settings.strategy === 'auto' && model.nativeTools !== false) return null
  const nodes = run.tree.nodesOf(run.turn.id)
  const plans = nodes.filter(({ purpose }) => purpose === 'plan')
  const leftMs = timeLeft(run, settings, plans[0] ?? run.node)
  const isOver = plans.length >= settings.maxRounds || plans.at(-1)?.output.calls === undefined || leftMs === 0
  const isDue = run.node.purpose === 'answer' && (plans.length === 0 || !isOver)
  const asked = askedOf(run, nodes)
  const judge = isDue ? judgeRequest(run, asked, nodes) : null
  if (judge === null) return { step: 'answer', request: answerRequest(run, asked, nodes) }
  const { tools } = buildRequest(run)
  const context = { input: run.turn.input, tools, results: actionResults(nodes), round: plans.length + 1 }
  return { step: 'judge', request: judge, settings, due: { context, leftMs } }
}

function timeLeft({ home }: NodeRun, { timeoutMs }: PlannerSettings, first: Node): number | null {
  if (timeoutMs === null) return null
  return Math.max(0, first.createdAt + timeoutMs - home.ledger.clock.now())
}

/** The request of the run, in slots. */
function askedOf({ agent }: NodeRun, nodes: readonly Node[]): Prompt {
  if (agent.asked !== null) return agent.asked
  const content = nodes.find(({ kind }) => kind === 'user_message')?.input.content ?? ''
  if (typeof content === 'string') return new Prompt().input(content)
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  const others = content.filter(({ type }) => type !== 'text')
  return new Prompt().input(texts.join('\n\n')).attachment(others)
}

const QUESTION =
  'Decide whether one of {tools} is needed to answer {input}. If so, say which one, with what arguments and for what purpose. If what is known already is enough, no tool is needed.'

const QUESTIONS =
  'Decide whether some of {tools} are needed to answer {input}. If so, say which ones, each with its arguments and for what purpose; they are used at the same time, so none may need what another finds. If what is known already is enough, no tool is needed.'

/** Null where there is no tool to plan with. */
function judgeRequest(run: NodeRun, asked: Prompt, nodes: readonly Node[]): ModelRequest | null {
  const { tools } = buildRequest(run)
  if (tools.length === 0) return null
  const isOne = (run.hooks?.planner?.parallel ?? 1) === 1
  const {
    instruct,
    output: _output,
    output_format: _format,
    examples: _examples,
    options: _options,
    ...kept
  } = slotsOf(asked)
  const slots = { ...kept, ...(instruct === undefined ? {} : { 'extra instruction': instruct }) }
  const results = actionResults(nodes)
  const prompt = promptFromSlots(slots)
    .actionResults(Object.keys(results).length === 0 ? null : results)
    .replace(
      'tools',
      tools.map(({ name, description, inputSchema }) => ({ name, desc: description, kwargs: toolShape(inputSchema) })),
    )
    .instruct(isOne ? QUESTION : QUESTIONS)
    .output(isOne ? PLAN_SHAPE : PLANS_SHAPE)
  const { output } = prompt.toRequest({ tools: 'text' })
  const judged = { ...run, agent: { ...run.agent, asked: prompt, output } }
  return { ...buildRequest(judged), tools: [] }
}

const NOTICE =
  'The {action_results} were found for this request: build the answer on them, say where what you use of them comes from, and leave out what they do not say.'

/** Puts the results into the prompt beside the question. */
function answerRequest(run: NodeRun, asked: Prompt, nodes: readonly Node[]): ModelRequest {
  const results = actionResults(nodes)
  if (Object.keys(results).length === 0) return { ...buildRequest(run), tools: [] }
  const prompt = asked.addActionResults(results).set('extra_instruction', NOTICE)
  return { ...buildRequest({ ...run, agent: { ...run.agent, asked: prompt } }), tools: [] }
}

/** A tool's arguments as a shape of the prompt language: `{ city: { $type: 'str', $desc: 'Which one' } }`. */
function toolShape(schema: JsonSchema): Json {
  const { type, properties } = schema as { type?: unknown; properties?: unknown }
  if (type !== 'object' || typeof properties !== 'object' || properties === null) return { $schema: schema as Json }
  const required = Array.isArray(schema['required']) ? (schema['required'] as unknown[]) : []
  const fields = Object.entries(properties).map(([name, field]): [string, Json] => {
    const { type: inner, description } = fieldOf(field as JsonSchema)
    const notes = [description, required.includes(name) ? '' : '(may be left out)'].filter((text) => text !== '')
    return [name, notes.length === 0 ? inner : { $type: inner, $desc: notes.join(' ') }]
  })
  return Object.fromEntries(fields)
}

const TYPES: ReadonlyMap<unknown, string> = new Map([
  ['string', 'str'],
  ['integer', 'int'],
  ['number', 'float'],
  ['boolean', 'bool'],
])

function fieldOf(schema: JsonSchema): { readonly type: Json; readonly description: string } {
  const description = typeof schema['description'] === 'string' ? schema['description'] : ''
  const { type, enum: choices, items } = schema as { type?: unknown; enum?: unknown; items?: unknown }
  if (Array.isArray(choices) && choices.every((choice) => typeof choice === 'string')) {
    return { type: choices.map((choice) => JSON.stringify(choice)).join(' | '), description }
  }
  const simple = TYPES.get(type)
  if (simple !== undefined) return { type: simple, description }
  if (type === 'array' && typeof items === 'object' && items !== null) {
    return { type: [fieldOf(items as JsonSchema).type], description }
  }
  return { type: { $schema: schema as Json }, description }
}
