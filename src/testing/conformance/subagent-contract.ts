import type { AnyAgent, SubagentConfig } from '../../core/agent/definition/agent.ts'
import { canonicalJson, type Json, toJson } from '../../core/base/json.ts'
import { anything, readOptions } from '../../core/base/options.ts'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import { EVERYTHING } from '../../core/grant/grant.ts'
import { textOf } from '../../core/graph/content.ts'
import type { Node } from '../../core/graph/rows.ts'
import { resultContent } from '../../core/graph/tasks.ts'
import type { ToolSchema } from '../../core/model/model.ts'
import { createRuntime } from '../../core/runtime/runtime.ts'
import { agent as defineAgent } from '../../core/runtime/standalone.ts'
import { type Script, scriptedModel } from '../stand-ins/scripted-model.ts'

export interface ContractOptions {
  /** An input that the agent accepts. Default: one made from its schema. */
  readonly input?: Json
}

/**
 * Checks that an agent keeps the contract of a subagent: its tool shows exactly the fields of its input, and however a
 * delegation ends, the host gets the documented text and metadata. A script replaces its model, and its tools are not
 * called. Rejects with a list of all problems.
 */
export async function checkSubagentContract(agent: AnyAgent, options: ContractOptions = {}): Promise<void> {
  readOptions('checkSubagentContract(agent, options)', options, { input: anything })
  const trial = new Trial(agent, options)
  const wrong = [...(await trial.shape()), ...(await trial.refusal()), ...(await trial.endings())]
  if (wrong.length === 0) return
  throw new Error(`"${agent.name}" breaks the contract of a subagent:\n${wrong.map((line) => `- ${line}`).join('\n')}`)
}

const TOOL = 'subagent_under_test'
const RESERVED = ['delegation_context', 'outcome', 'response_metadata', 'subagent', 'supervisor']

interface Result {
  readonly task: Node
  readonly text: string
  readonly metadata: { readonly [key: string]: Json }
  readonly children: number
  readonly modelCalls: number
  readonly offered: ToolSchema | undefined
}

interface Call {
  readonly input: Json
  readonly script: Script
  readonly config?: Omit<SubagentConfig, 'agent' | 'model'>
  /** Whether the run is cancelled at the child's model call. */
  readonly isCancelled?: boolean
}

class Trial {
  private readonly agent: AnyAgent
  private readonly isTyped: boolean
  private readonly input: Json

  constructor(agent: AnyAgent, { input }: ContractOptions) {
    this.agent = agent
    this.isTyped = agent.input !== null
    const sample = agent.input === null ? { message: 'Hello.' } : (input ?? sampleInput(agent.input.jsonSchema))
    if (sample === undefined) {
      throw new Error(`No input for "${agent.name}" can be made up: give one, checkSubagentContract(agent, { input }).`)
    }
    this.input = sample
  }

  /** Checks the field-set law: a model sees the input's own schema without preset fields. */
  async shape(): Promise<string[]> {
    const { offered } = await this.call({ input: this.input, script: () => 'ok' })
    const own = this.agent.input?.jsonSchema ?? null
    const wrong: string[] = []
    if ((offered?.description ?? '').trim() === '') wrong.push('its tool has no description')
    if (own !== null && !isSame(offered?.inputSchema, own)) wrong.push('its tool shows another schema than its input')
    if (own === null && fieldsOf(offered).join() !== 'message,session_id') {
      wrong.push('its tool shows other fields than message and session_id')
    }
    const [field] = own === null ? [] : fieldsOf({ inputSchema: own })
    if (field !== undefined) wrong.push(...(await this.presetShape(field)))
    return wrong
  }

  private async presetShape(field: string): Promise<string[]> {
    const value = (this.input as { readonly [name: string]: Json })[field] ?? null
    const config = { presets: { [field]: value } }
    const { offered } = await this.call({ input: this.input, script: () => 'ok', config })
    return fieldsOf(offered).includes(field) ? [`the preset field "${field}" is shown`] : []
  }

  /** Checks that a wrong input makes no child and costs no model call. */
  async refusal(): Promise<string[]> {
    const { text, metadata, children, modelCalls } = await this.call({ input: 7, script: () => 'ok' })
    const start = this.isTyped ? 'Subagent input validation failed. Details: ' : 'Error: Message is required'
    return [
      ...expectStart('an input that is not an object', text, start),
      ...(children + modelCalls === 0 ? [] : ['an input that is not an object made a child']),
      ...this.metadataFaults('an input that is not an object', metadata, 'invalid_input'),
    ]
  }

  /** Checks every way a child can end, as its host reads it. */
  async endings(): Promise<string[]> {
    const cause = 'the model is out of order'
    const failed = this.isTyped ? 'Subagent execution unavailable. ' : 'Error: Execution error: '
    const fail: Script = () => ({ error: new Error(cause) })
    return [
      ...(await this.completed()),
      ...(await this.ending('a failing model', { script: fail }, { start: failed, holds: cause, status: 'failed' })),
      ...(await this.ending('an empty answer', { script: () => '' }, { start: failed, status: 'failed' })),
      ...(await this.invalidOutput(failed)),
      ...(await this.interrupted()),
    ]
  }

  private async completed(): Promise<string[]> {
    const answer = this.goodAnswer()
    if (answer === undefined) return []
    const { text, metadata, children } = await this.call({ input: this.input, script: () => answer })
    const wrong = children === 1 ? [] : [`a good call made ${children} children`]
    if (!text.endsWith(answer)) wrong.push('the answer is not in the result')
    if (!this.isTyped) wrong.push(...expectStart('a good call', text, 'session_id: '))
    return [...wrong, ...this.metadataFaults('a good call', metadata, 'completed')]
  }

  private async invalidOutput(failed: string): Promise<string[]> {
    if (this.agent.output === null) return []
    const start = this.isTyped ? 'Subagent produced invalid reply payload. ' : failed
    return this.ending('an answer that is not JSON', { script: () => 'no JSON' }, { start, status: 'invalid_output' })
  }

  private async interrupted(): Promise<string[]> {
    const start = this.isTyped
      ? '<system-info>The tool call has been interrupted by the user.</system-info>'
      : 'Error: Execution error: cancelled'
    const script: Script = () => ({ text: 'never said', delayMs: 60_000 })
    return this.ending('a call that is cancelled', { script, isCancelled: true }, { start, status: 'cancelled' })
  }

  private async ending(
    what: string,
    call: Omit<Call, 'input'>,
    expected: { readonly start: string; readonly status: string; readonly holds?: string },
  ): Promise<string[]> {
    const { text, metadata } = await this.call({ ...call, input: this.input })
    const wrong = [...expectStart(what, text, expected.start), ...this.metadataFaults(what, metadata, expected.status)]
    if (expected.holds !== undefined && !text.includes(expected.holds)) wrong.push(`${what}: the cause is not told`)
    return wrong
  }

  private metadataFaults(what: string, metadata: Result['metadata'], status: string): string[] {
    const wrong: string[] = []
    const isUnavailable = !['completed', 'cancelled'].includes(status)
    const known = isUnavailable ? [...RESERVED, 'error', 'unavailable'] : RESERVED
    const unknown = Object.keys(metadata).filter((key) => !known.includes(key))
    if (unknown.length > 0) wrong.push(`${what}: its metadata has ${unknown.join(', ')}`)
    if (metadata['subagent'] !== this.agent.name) wrong.push(`${what}: its metadata does not name the subagent`)
    if (metadata['supervisor'] !== HOST) wrong.push(`${what}: its metadata does not name the host`)
    if ((metadata['unavailable'] === true) !== isUnavailable) wrong.push(`${what}: unavailable is wrong`)
    const ended = (metadata['outcome'] as { readonly status?: Json } | undefined)?.status
    if (ended !== status) wrong.push(`${what}: it ended ${String(ended)}, not ${status}`)
    return wrong
  }

  private goodAnswer(): string | undefined {
    if (this.agent.output === null) return 'All is well.'
    const value = sampleInput(this.agent.output.jsonSchema)
    return value === undefined ? undefined : JSON.stringify(value)
  }

  private async call({ input, script, config = {}, isCancelled = false }: Call): Promise<Result> {
    const runtime = createRuntime()
    let cancel: () => void = () => undefined
    const id = this.agent.model?.id ?? 'scripted/model'
    const childModel = scriptedModel((request, at) => {
      if (isCancelled) cancel()
      return script(request, at)
    }, id)
    const model = scriptedModel((_, at) => (at === 0 ? { calls: [{ name: TOOL, input }] } : 'done'))
    const host = defineAgent({
      grant: { use: EVERYTHING },
      name: HOST,
      instructions: '',
      model,
      subagents: { [TOOL]: { ...config, agent: this.agent, model: childModel } },
    })
    try {
      const run = runtime.run(host, 'Go.')
      cancel = () => {
        run.cancel().catch(() => undefined)
      }
      const { children } = await run.result
      const tree = await runtime.store.tree(run.conversationId)
      const task = tree.nodesOf(run.id).find(({ kind }) => kind === 'task')
      if (task === undefined) throw new Error(`"${this.agent.name}" could not be called.`)
      return {
        task,
        text: textOf(resultContent(task)),
        metadata: task.output.metadata ?? {},
        children,
        modelCalls: childModel.requests.length,
        offered: model.requests[0]?.tools.find(({ name }) => name === TOOL),
      }
    } finally {
      await runtime.close()
    }
  }
}

const HOST = 'contract-host'

function fieldsOf(schema: Pick<ToolSchema, 'inputSchema'> | undefined): string[] {
  return Object.keys((schema?.inputSchema['properties'] ?? {}) as object).sort()
}

function expectStart(what: string, text: string, start: string): string[] {
  return text.startsWith(start)
    ? []
    : [`${what}: the result begins ${JSON.stringify(text.slice(0, 80))}, not "${start}"`]
}

function isSame(one: unknown, other: unknown): boolean {
  const [a, b] = [toJson(one), toJson(other)]
  return a.ok && b.ok && canonicalJson(a.value) === canonicalJson(b.value)
}

/** Makes a value that fits a JSON Schema, for the kinds of schemas tools have; undefined if it cannot. */
function sampleInput(schema: JsonSchema): Json | undefined {
  for (const key of ['default', 'const'] as const) if (schema[key] !== undefined) return schema[key] as Json
  const choices = schema['enum'] ?? schema['examples']
  if (Array.isArray(choices) && choices.length > 0) return choices[0] as Json
  const arms = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(arms)) return firstSample(arms as JsonSchema[])
  const type = Array.isArray(schema['type']) ? schema['type'][0] : schema['type']
  return sampleOf(type as string | undefined, schema)
}

function sampleOf(type: string | undefined, schema: JsonSchema): Json | undefined {
  switch (type) {
    case 'object':
      return sampleObject(schema)
    case 'array':
      return sampleList(schema)
    case 'string':
      return schema['format'] === undefined && schema['pattern'] === undefined ? sampleText(schema) : undefined
    case 'integer':
    case 'number':
      return sampleNumber(schema)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return undefined
  }
}

function sampleObject(schema: JsonSchema): Json | undefined {
  const properties = (schema['properties'] ?? {}) as { readonly [name: string]: JsonSchema }
  const made: { [name: string]: Json } = {}
  for (const name of (schema['required'] ?? []) as readonly string[]) {
    const value = sampleInput(properties[name] ?? {})
    if (value === undefined) return undefined
    made[name] = value
  }
  return made
}

function sampleList(schema: JsonSchema): Json | undefined {
  const count = Number(schema['minItems'] ?? 0)
  const item = sampleInput((schema['items'] ?? {}) as JsonSchema)
  if (count > 0 && item === undefined) return undefined
  return Array.from({ length: count }, () => item as Json)
}

function sampleText(schema: JsonSchema): string {
  return 'sample text'
    .repeat(50)
    .slice(0, Math.max(Number(schema['minLength'] ?? 1), Math.min(11, Number(schema['maxLength'] ?? 11))))
}

function sampleNumber(schema: JsonSchema): number {
  const above = schema['exclusiveMinimum'] === undefined ? undefined : Number(schema['exclusiveMinimum']) + 1
  const least = Number(schema['minimum'] ?? above ?? 1)
  return Math.min(least, Number(schema['maximum'] ?? least))
}

function firstSample(arms: readonly JsonSchema[]): Json | undefined {
  for (const arm of arms) {
    const value = sampleInput(arm)
    if (value !== undefined) return value
  }
  return undefined
}
