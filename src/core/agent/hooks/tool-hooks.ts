import { messageOf } from '../../base/error.ts'
import { toJson } from '../../base/json.ts'
import type { ToolCall } from '../../graph/content.ts'
import type { PendingPermission } from '../../tool/invoke.ts'
import { errorEnd, type ToolEnd, valueEnd } from '../../tool/result.ts'
import {
  type AfterTool,
  type BeforeTool,
  type ChildCall,
  type HookedCall,
  type ToolResult,
  useEach,
} from '../definition/hooks.ts'
import { callHooks, placeOf } from './model-hooks.ts'
import type { HooksAbove, NodeRun, Voice } from './node-run.ts'

/**
 * Shows a call to the guards of files, then to the `beforeTool` hooks. A call that these hooks change is shown to the guards again:
 * what runs is what the guards have seen.
 */
export async function guardCall(
  run: NodeRun,
  call: ToolCall,
  above: HooksAbove | null,
): Promise<ToolCall | ToolEnd | PendingPermission> {
  const guarded = await applyGuards(run, call, above)
  if (!isCall(guarded)) return guarded
  const hooked = await applyBeforeTool(run, guarded, above)
  if (hooked === guarded || !isCall(hooked)) return hooked
  const last = await applyGuards(run, hooked, above)
  if (!isCall(last) || last === hooked) return last
  return errorEnd('Refused: a hook of a file changes the call again that a hook of code has changed.')
}

function isCall(given: ToolCall | ToolEnd | PendingPermission): given is ToolCall {
  return !('state' in given) && !('ask' in given)
}

/** The guards of the agent's own file, then those of its hosts. A guard that fails refuses the call. */
async function applyGuards(
  run: NodeRun,
  call: ToolCall,
  above: HooksAbove | null,
): Promise<ToolCall | ToolEnd | PendingPermission> {
  const own = run.agent.guards === null ? [] : [{ guards: run.agent.guards, layers: run.layers }]
  let guarded = call
  for (const { guards, layers } of [...own, ...(above?.guards ?? [])]) {
    const given = await guards.before({ ...run, layers }, guarded)
    if (!isCall(given)) return given
    guarded = given
  }
  return guarded
}

/**
 * Applies the `beforeTool` hooks one after the other; returns the changed call, or its end where one answers or refuses
 * it.
 */
async function applyBeforeTool(run: NodeRun, call: ToolCall, above: HooksAbove | null): Promise<ToolCall | ToolEnd> {
  const own = (run.hooks?.of('beforeTool') ?? []).map((extension) => ({ extension, place: placeOf(run) }))
  let hooked: ToolCall | ToolEnd = call
  for (const voice of [...own, ...(above?.deciding ?? [])]) {
    if ('state' in hooked) return hooked
    hooked = await hookedBy(run, hooked, voice)
  }
  return hooked
}

/** A hook that fails refuses the call: that may have been its purpose. */
async function hookedBy(run: NodeRun, call: ToolCall, { extension, place }: Voice): Promise<ToolCall | ToolEnd> {
  let hooked: ToolCall | ToolEnd = call
  try {
    const context = run.home.live.extensions.contextOf(extension, place)
    await useEach(extension.hooks?.beforeTool?.(shown(run, call), context), (said) => {
      if (!('state' in hooked)) hooked = applied(run, hooked, said)
    })
    return hooked
  } catch (error) {
    await run.home.live.extensions.report(extension, { hook: 'beforeTool', error }, placeOf(run))
    return errorEnd(`Refused: the hook before it failed: ${messageOf(error)}`)
  }
}

function applied(run: NodeRun, call: ToolCall, said: unknown): ToolCall | ToolEnd {
  const verdict = readVerdict(said)
  if ('refuse' in verdict) return errorEnd(`Refused: ${verdict.refuse}`)
  const what = 'answer' in verdict ? 'answer' : 'input'
  const json = toJson('answer' in verdict ? verdict.answer : verdict.input)
  if (!json.ok) return errorEnd(`Refused: the hook gave an ${what} that is not JSON: ${json.error}`)
  return what === 'answer' ? valueEnd(json.value, run.node.id) : { ...call, input: json.value }
}

const FORMS: readonly string[] = ['input', 'answer', 'refuse']

/** A result of an unknown form refuses the call, because that may have been meant. */
function readVerdict(said: unknown): NonNullable<BeforeTool> {
  const keys = typeof said === 'object' && said !== null ? Object.keys(said) : []
  const [form = ''] = keys
  if (keys.length === 1 && FORMS.includes(form)) return said as NonNullable<BeforeTool>
  throw new Error(`beforeTool gives { input }, { answer }, { refuse } or nothing, not ${describeValue(said)}`)
}

const MOST_KEYS = 5

function describeValue(value: unknown): string {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : []
  if (keys.length > 0) return `{ ${keys.slice(0, MOST_KEYS).join(', ')} }`
  return typeof value === 'object' ? '{}' : typeof value === 'string' ? 'a text' : String(value).slice(0, 40)
}

/** Applies the `afterTool` hooks. If one fails whose extension wants that, the result is withheld. */
export async function applyAfterTool(run: NodeRun, given: ToolEnd): Promise<ToolEnd> {
  const call = run.node.input.call
  const end = run.agent.guards === null ? given : await run.agent.guards.after(run, given)
  if (call === undefined || run.hooks?.has('afterTool') !== true || end.state !== 'finished') return end
  let hooked = end
  try {
    await callHooks<AfterTool>(run, {
      hook: 'afterTool',
      call: ({ hooks }, context) => hooks?.afterTool?.(shown(run, call), shownResult(hooked), context),
      use: (said) => {
        hooked = replaced(run, hooked, said)
      },
    })
  } catch (error) {
    return errorEnd(`The result of ${call.name} is withheld: ${messageOf(error)}. The call itself has been made.`)
  }
  return hooked
}

/** A hook without a `result` keeps the tool's. A result of an unknown form changes nothing. */
function replaced(run: NodeRun, end: ToolEnd, said: AfterTool): ToolEnd {
  const keys = typeof said === 'object' && said !== null ? Object.keys(said) : []
  const { result, isError } = keys.every((key) => key === 'result' || key === 'isError') ? said : {}
  const isFlag = isError === undefined || typeof isError === 'boolean'
  if (!isFlag || (result === undefined && isError === undefined)) {
    throw new Error(`afterTool gives { result, isError }, { isError } or nothing, not ${describeValue(said)}`)
  }
  if (result === undefined) return { ...end, output: { ...end.output, isError: isError === true } }
  const json = toJson(result)
  if (!json.ok) throw new Error(`it gave a result that is not JSON: ${json.error}`)
  const made = valueEnd(json.value, run.node.id)
  return isError === true ? { ...made, output: { ...made.output, isError } } : made
}

/** Shows a copy of the call to the hooks that may only watch. */
export function showCall(run: NodeRun, call: ToolCall, watching: readonly Voice[]): void {
  const { home, conversation } = run
  for (const { extension, place } of watching) {
    const failed = (error: unknown) =>
      home.settings.logger.warn(`The hook onChildTool failed: ${messageOf(error)}`, {
        extension: extension.name,
        error,
      })
    try {
      const child: ChildCall = { ...shown(run, call), path: [...conversation.path] }
      const seen = extension.hooks?.onChildTool?.(child, home.live.extensions.contextOf(extension, place))
      Promise.resolve(seen).catch(failed)
    } catch (error) {
      failed(error)
    }
  }
}

function shown({ node }: NodeRun, { name, input }: ToolCall): HookedCall {
  const copy = toJson(input)
  return { tool: name, input: copy.ok ? copy.value : null, nodeId: node.id, runId: node.turnId }
}

/** The whole result: it is cut for the model after the hooks. */
function shownResult({ output, whole }: ToolEnd): ToolResult {
  const { content = '', value } = whole ?? output ?? {}
  return { content, value, isError: output?.isError === true }
}
