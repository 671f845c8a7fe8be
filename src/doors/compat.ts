import {
  type UseMcpOptions,
  withFree,
  withFunction,
  withMcp,
  withSelectedTools,
  withTool,
} from '../core/agent/build/with-tools.ts'
import type {
  AgentCore,
  AnyAgent,
  McpServers,
  ToolChoice,
  ToolFunctionOptions,
  Tools,
} from '../core/agent/definition/agent.ts'
import { InputError } from '../core/base/error.ts'
import type { InferOutput, Schema } from '../core/base/schema/schema.ts'
import type { FieldResult } from '../core/conversation/fields/field-handlers.ts'
import type { KeyOptions, RunFields } from '../core/conversation/fields/run-fields.ts'
import type { FieldOptions } from '../core/conversation/fields/wait-for-field.ts'
import type { FieldHandler, RawOf, Run } from '../core/conversation/run.ts'
import { RunHandle } from '../core/conversation/run-handle.ts'
import { loadPromptFile } from '../core/extension/prompt-files.ts'
import type { FieldPath, FieldValue } from '../core/fields/field-path.ts'
import { loadPromptText, type PromptLoadOptions } from '../core/prompt/file/load-text.ts'
import type { Prompt } from '../core/prompt/prompt.ts'
import { changeAgent } from '../core/runtime/standalone.ts'
import type { ShapedTool, ToolContext, ToolDefinition } from '../core/tool/tool.ts'
import type { McpServerOptions } from '../core/tools/mcp/options.ts'

/**
 * Functions that you may know by these names from other frameworks. Legate has one way for each: `run.field`, `run.fields`,
 * `run.onField` and `run.settled` for fields, `agent({ tools, sources })` for tools, `loadPromptFile` and `loadPromptText` for
 * prompt files.
 */
export type { UseMcpOptions } from '../core/agent/build/with-tools.ts'
export type { ToolFunctionOptions } from '../core/agent/definition/agent.ts'
export type { KeyOptions } from '../core/conversation/fields/run-fields.ts'
export {
  type MakeSubagentOptions,
  makeSubagentTool,
  type SubagentHost,
  type SubagentSpec,
  type SubagentTool,
} from '../core/delegation/make-subagent-tool.ts'
export type { ShapedTool } from '../core/tool/tool.ts'

/** Waits for a field as `run.field` does. Checks before that the run has an output and, with `mustInPrompt`, the key. */
export function getKeyResult<Self extends Run, P extends FieldPath<RawOf<Self>>, Default = never>(
  run: Self,
  key: P,
  options: KeyOptions & FieldOptions<Default> = {},
): Promise<FieldValue<RawOf<Self>, P> | Default> {
  const value = fieldsOf(run, 'getKeyResult').getKeyResult(key, options)
  return value as Promise<FieldValue<RawOf<Self>, P> | Default>
}

/** Gives the first value of each key as [path, value], in the order in which they are complete. */
export function waitKeys<Self extends Run>(
  run: Self,
  keys: readonly FieldPath<RawOf<Self>>[],
  options: KeyOptions = {},
): AsyncIterable<[path: string, value: unknown]> {
  return fieldsOf(run, 'waitKeys').waitKeys(keys, options)
}

/** Calls the handler as `run.onField` does, after the checks of `getKeyResult`. Returns the run. */
export function whenKey<Self extends Run, P extends FieldPath<RawOf<Self>>>(
  run: Self,
  key: P,
  ...[handler, options = {}]: HandlerArguments<FieldValue<RawOf<Self>, P>>
): Self {
  const fields = fieldsOf(run, 'whenKey')
  fields.checkKeys([key], 'whenKey', options)
  fields.onField(key, handler)
  return run
}

/** Waits as `run.settled` does. Refuses a run that has no handlers. */
export async function startWaiter(run: Run): Promise<FieldResult[]> {
  return fieldsOf(run, 'startWaiter').startWaiter()
}

type HandlerArguments<Value> = [handler: FieldHandler<Value>, options?: KeyOptions]

function fieldsOf(run: Run, name: string): RunFields {
  if (run instanceof RunHandle) return run.reading
  throw new InputError('invalid_input', `${name}(run): the first argument is a run, as runtime.run() gives it.`)
}

/** Returns the agent with one more tool. The agent that you pass stays unchanged. */
export function registerTool<Self extends AnyAgent, In extends Schema, Result>(
  agent: Self,
  name: string,
  given: Tools[string] | ToolDefinition<In, Result>,
): Self
/** A shorter form: the input as a shape, `kwargs: { city: ['str', 'Where'] }`. */
export function registerTool<Self extends AnyAgent>(agent: Self, name: string, given: ShapedTool): Self
export function registerTool<Self extends AnyAgent>(agent: Self, given: ShapedTool & { readonly name: string }): Self
export function registerTool(agent: AnyAgent, ...given: unknown[]): unknown {
  return changeAgent(agent, (core) => withTool(core, ...(given as Rest<typeof withTool>)))
}

/**
 * Returns the agent with more tools: an object of them, a function of `auto`, a name it has already, or a list of these.
 */
export function useTools<Self extends AnyAgent>(agent: Self, tools: ToolChoice | readonly ToolChoice[]): Self {
  return changeAgent(agent, (core) => withSelectedTools(core, tools))
}

/** Adds one tool, as `useTools` adds several. */
export function useTool<Self extends AnyAgent>(agent: Self, tool: ToolChoice): Self {
  return useTools(agent, tool)
}

/** Returns the agent with a function as a tool, under the function's name. */
export function toolFunc<Self extends AnyAgent, const In extends Schema, Result>(
  agent: Self,
  code: (input: InferOutput<In>, context: ToolContext) => Result | Promise<Result>,
  options: ToolFunctionOptions<In>,
): Self
/** Takes a plain function: its parameters, by name, are the tool's input. */
export function toolFunc<Self extends AnyAgent>(
  agent: Self,
  code: (...given: never[]) => unknown,
  options?: Omit<ToolFunctionOptions, 'input'>,
): Self
export function toolFunc(agent: AnyAgent, ...given: Rest<typeof withFunction>): unknown {
  return changeAgent(agent, (core) => withFunction(core, ...given))
}

/**
 * Returns the agent with the tools of MCP servers: `{ github: { command, args } }`, as in `mcpServers` of config files; one of
 * these without a name; an address, `https://...`; or a script, `server.py` or `server.js`. With `asks: true` a person is asked
 * before one of them starts, though no rule of the agent allows it.
 */
export function useMcp<Self extends AnyAgent>(
  agent: Self,
  servers: string | McpServers | McpServerOptions | { readonly mcpServers: McpServers },
  options: UseMcpOptions = {},
): Self {
  return changeAgent(agent, (core) => withMcp(core, servers, options))
}

/**
 * Returns the agent with more exceptions from what its own grant asks for: `free` of a grant. They allow nothing that the grant does
 * not name, and answer no `ask` of the runtime, a caller or a subagent.
 */
export function leaveFree<Self extends AnyAgent>(agent: Self, rules: readonly string[]): Self {
  return changeAgent(agent, (core) => withFree(core, rules))
}

type Rest<F extends (agent: AgentCore, ...others: never[]) => unknown> =
  Parameters<F> extends [AgentCore, ...infer Others] ? Others : never

/**
 * Reads a prompt in YAML. A text with a line break, or one that begins with `{`, is the prompt itself; any other text is the path
 * of a file, which must exist. With `onto: agent.request()` it becomes a request of that agent.
 */
export async function loadYamlPrompt<P extends Prompt = Prompt>(
  pathOrContent: string,
  options: PromptLoadOptions<P> = {},
): Promise<P> {
  const load = isContent(pathOrContent, 'loadYamlPrompt') ? loadPromptText<P> : loadPromptFile<P>
  return load(pathOrContent, { ...options, format: 'yaml' })
}

/** Reads a prompt in JSON, as `loadYamlPrompt` does; comments and trailing commas are allowed. */
export async function loadJsonPrompt<P extends Prompt = Prompt>(
  pathOrContent: string,
  options: PromptLoadOptions<P> = {},
): Promise<P> {
  const load = isContent(pathOrContent, 'loadJsonPrompt') ? loadPromptText<P> : loadPromptFile<P>
  return load(pathOrContent, { ...options, format: 'json' })
}

function isContent(given: string, name: string): boolean {
  if (typeof given !== 'string' || given === '') {
    const onto = `For a request of an agent: ${name}(text, { onto: agent.request() }).`
    throw new InputError('invalid_input', `${name}(): give it the path of a file, or a text with the prompt. ${onto}`)
  }
  return given.includes('\n') || given.trimStart().startsWith('{')
}
