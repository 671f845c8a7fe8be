import { autoCore, autoFromAgent, makeCallable } from '../agent/build/auto.ts'
import { defineAgent } from '../agent/build/definition.ts'
import { withIdentity } from '../agent/build/identity.ts'
import type { ReplyDefinition } from '../agent/build/reply.ts'
import {
  type Agent,
  type AgentCore,
  type AgentDefinition,
  type AgentInput,
  type AgentOutput,
  type AgentRawOutput,
  type AnyAgent,
  type AutoDefinition,
  type AutoFunction,
  type DirectInput,
  type Extension,
  markAgent,
  type RunOptions,
  type Subagents,
} from '../agent/definition/agent.ts'
import {
  AgentRequest,
  type PromptInput,
  type RequestAgent,
  type RequestStartOptions,
} from '../agent/definition/agent-request.ts'
import { checkExtension, OWN_HOOKS } from '../agent/definition/extension.ts'
import { CallerInput, refuseForReply } from '../agent/definition/input.ts'
import { DefinitionError, RunError } from '../base/error.ts'
import { type NoOptions, readOptions } from '../base/options.ts'
import type { InferInput, InferOutput, Schema } from '../base/schema/schema.ts'
import type { Run } from '../conversation/run.ts'
import { withBackground } from '../delegation/background/tools.ts'
import type { CompletedOutcome } from '../graph/outcome.ts'
import { currentCall } from '../tool/current.ts'
import type { StartOptions } from './options.ts'
import { createRuntime, Runtime } from './runtime.ts'

/** Defines an agent whose answers your code gives, in place of a model. Schemas, grants and limits apply to it as to any agent. */
export function agent<
  const In extends Schema | undefined = undefined,
  const Out extends Schema | undefined = undefined,
  const Below extends Subagents = Record<never, never>,
>(definition: ReplyDefinition<In, Out, Below>): Agent<AgentInput<In>, AgentOutput<Out>, AgentRawOutput<Out>>
/** Defines an agent: an immutable value, which may be run by itself, by a runtime, or as a subagent of others. */
export function agent<
  const In extends Schema | undefined = undefined,
  const Out extends Schema | undefined = undefined,
>(definition: AgentDefinition<In, Out>): Agent<AgentInput<In>, AgentOutput<Out>, AgentRawOutput<Out>>
export function agent(definition: object): unknown {
  return asAgent(defineAgent(withBackground(definition) as Parameters<typeof defineAgent>[0]))
}

/** The object that users hold of an agent. */
export function asAgent<In, Out, Written>(core: AgentCore): Agent<In, Out, Written> {
  const start = (input: In | DirectInput, options?: RunOptions) => run(new CallerInput(input), runtimeHere(), options)
  const run = (input: CallerInput, runtime: Runtime, options?: StartOptions) => runtime.run(agent, input as In, options)
  const request = (options: NoOptions = {}) => {
    readOptions('request()', options, {})
    refuseForReply(core, 'a request')
    return new AgentRequest<Out>(requestAgent(run))
  }
  const agent = Object.defineProperties(
    {
      generate: (input: In | DirectInput, options?: RunOptions) => completedHere(() => start(input, options)),
      stream: start,
      use: (extension: Extension) => changedAgent(withExtension(core, extension)),
      auto: (definition: AutoDefinition<Schema, Schema>) => madeFunction(autoFromAgent(core, definition)),
      request,
      loadPromptFile: (...given: Parameters<AgentRequest['loadPromptFile']>) => request().loadPromptFile(...given),
      loadPromptText: (...given: Parameters<AgentRequest['loadPromptText']>) => request().loadPromptText(...given),
    },
    Object.getOwnPropertyDescriptors(core),
  ) as unknown as Agent<In, Out, Written>
  if (core.extensions.length > 0) Object.defineProperties(agent, extensionMethods(agent as AnyAgent))
  cores.set(agent, core)
  return markAgent(agent)
}

/** The definition behind each object that users hold. */
const cores: WeakMap<object, AgentCore> = new WeakMap()

/** Gives the agent with a changed definition, and leaves the agent itself unchanged. */
export function changeAgent<Self extends AnyAgent>(agent: Self, change: (core: AgentCore) => AgentCore): Self {
  const core = cores.get(agent)
  if (core === undefined) throw new DefinitionError('definition', 'Give it an agent, made with agent() or auto().')
  return changedAgent(change(core)) as unknown as Self
}

/** The object of an agent that has more code now. No row keeps the code, so the agent is found by its name from here on. */
function changedAgent<In, Out, Written>(core: AgentCore): Agent<In, Out, Written> {
  return asAgent(core.inline === null ? core : withIdentity({ ...core, inline: null }))
}

/** A typed function that a model implements. What cannot work is refused here, not when it is called. */
export function auto<const In extends Schema, const Out extends Schema>(
  definition: AutoDefinition<In, Out>,
): AutoFunction<InferInput<In>, InferOutput<Out>> {
  const own = autoCore(null, definition)
  const core = withIdentity({ ...defineAgent({ name: own.name ?? '', instructions: '' }), ...own })
  return madeFunction(core) as unknown as AutoFunction<InferInput<In>, InferOutput<Out>>
}

function madeFunction(core: AgentCore): AnyAgent {
  const agent = asAgent<unknown, unknown, unknown>(core)
  const call = async (input: unknown, options?: RunOptions) =>
    (await completedHere(() => runtimeHere().run(agent, input, options))).output
  const made = makeCallable(agent as AnyAgent, call)
  cores.set(made, core)
  return made
}

type Start = (input: CallerInput, runtime: Runtime, options?: StartOptions) => Run

function requestAgent(run: Start): RequestAgent {
  const start = (asked: PromptInput, { runtime, ...options }: RequestStartOptions) =>
    run(asked, runtimeOf(runtime), options)
  return {
    start,
    generate: (asked, options) => completedHere(() => start(asked, options)),
    reader: (runtime) => runtimeOf(runtime).store,
    load: async (onto, { kind, given, options }) =>
      (await loaders())[kind](given, { ...options, onto }) as Promise<AgentRequest>,
  }
}

async function loaders() {
  const { loadPromptFile } = await import('../extension/prompt-files.ts')
  const { loadPromptText } = await import('../prompt/file/load-text.ts')
  return { file: loadPromptFile, text: loadPromptText } as const
}

function runtimeOf(given: object | undefined): Runtime {
  if (given === undefined) return runtimeHere()
  if (given instanceof Runtime) return given
  throw new DefinitionError('definition', 'start({ runtime }): make the runtime with createRuntime().')
}

function completedHere<Out, Written>(start: () => Run<Out, Written>): Promise<CompletedOutcome<Out>> {
  const outcome = completed(start)
  // A tool that ends without awaiting its child cancels it: that is not an error nobody handled.
  if (currentCall() !== undefined) outcome.catch(() => undefined)
  return outcome
}

async function completed<Out, Written>(start: () => Run<Out, Written>): Promise<CompletedOutcome<Out>> {
  const run = start()
  const outcome = await run.result
  if (outcome.status === 'completed') return outcome as CompletedOutcome<Out>
  throw new RunError('run', `The run ${run.id} ended ${outcome.status}: ${outcome.error?.message ?? ''}`, {
    details: { outcome },
    isRetryable: outcome.retryable,
  })
}

let shared: Runtime | undefined

/** The runtime of the tool call we are in, else one in memory for all agents that are run by themselves. */
function runtimeHere(): Runtime {
  const current = currentCall()?.runtime
  if (current instanceof Runtime) return current
  shared ??= createRuntime()
  return shared
}

/** Adds an extension; the agent's own hooks stay last. */
function withExtension(agent: AgentCore, added: Extension): AgentCore {
  const where = `agent "${agent.name}"`
  checkExtension(added, where)
  const taken = agent.extensions.some(({ name }) => name === added.name)
  if (taken) refuse(`${where} uses an extension "${added.name}" already. Use it once, or rename one of them.`)
  const own = agent.extensions.filter(({ name }) => name === OWN_HOOKS)
  const others = agent.extensions.filter(({ name }) => name !== OWN_HOOKS)
  return withIdentity({ ...agent, extensions: [...others, added, ...own] })
}

/** The methods of all its extensions. Throws where one has the name of another, or of a method that every agent has. */
function extensionMethods(agent: AnyAgent): PropertyDescriptorMap {
  const methods: PropertyDescriptorMap = {}
  const owners = new Map<string, string>()
  for (const extension of agent.extensions as readonly Extension[]) {
    for (const [name, value] of Object.entries(givenBy(extension, agent))) {
      const owner = Object.hasOwn(agent, name) ? 'every agent' : owners.get(name)
      if (owner !== undefined) refuse(clash({ agent, extension, name, owner }))
      owners.set(name, `the extension "${extension.name}"`)
      methods[name] = { value, enumerable: true }
    }
  }
  return methods
}

function givenBy(extension: Extension, agent: AnyAgent): object {
  if (extension.methods === undefined) return {}
  const given: unknown = extension.methods(agent)
  const where = `agent "${agent.name}": the extension "${extension.name}"`
  if (typeof given !== 'object' || given === null) refuse(`${where}: methods(agent) gives an object of functions.`)
  // Whoever awaits or returns an agent that looks like a promise would call it.
  if ('then' in given) refuse(`${where} has a method "then": an agent is no promise. Rename it.`)
  const other = Object.entries(given).find(([, value]) => typeof value !== 'function')
  if (other !== undefined) refuse(`${where}: its method "${other[0]}" is not a function.`)
  return given
}

interface Clash {
  readonly agent: AnyAgent
  readonly extension: Extension
  readonly name: string
  readonly owner: string
}

function clash({ agent, extension, name, owner }: Clash): string {
  return `agent "${agent.name}": the extension "${extension.name}" has a method "${name}", and so has ${owner}. Rename one of them.`
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
