import { messageOf } from '../../base/error.ts'
import { toJson } from '../../base/json.ts'
import type { ToolCall } from '../../graph/content.ts'
import { errorEnd, type ToolEnd, valueEnd } from '../../tool/result.ts'
import type { HooksAbove, NodeRun, Voice } from '../node-run.ts'
import { callHooks, placeOf } from './call-hooks.ts'
import { each } from './given.ts'
import type { AfterTool, BeforeTool, ChildCall, HookedCall, ToolResult } from './hooks.ts'

/** The call as each hook wants it, one after the other; or its end, where one answers or refuses it. */
export async function hookedCall(run: NodeRun, call: ToolCall, above: HooksAbove | null): Promise<ToolCall | ToolEnd> {
  const own = (run.hooks?.of('beforeTool') ?? []).map((extension) => ({ extension, place: placeOf(run) }))
  let hooked: ToolCall | ToolEnd = call
  for (const voice of [...own, ...(above?.deciding ?? [])]) {
    if ('state' in hooked) return hooked
    hooked = await hookedBy(run, hooked, voice)
  }
  return hooked
}

/** A hook that fails lets nothing run: it may have been there to refuse. */
async function hookedBy(run: NodeRun, call: ToolCall, { extension, place }: Voice): Promise<ToolCall | ToolEnd> {
  let hooked: ToolCall | ToolEnd = call
  try {
    const context = run.home.extensionRuns.contextOf(extension, place)
    await each(extension.hooks?.beforeTool?.(shown(run, call), context), (said) => {
      if (!('state' in hooked)) hooked = applied(run, hooked, said)
    })
    return hooked
  } catch (error) {
    await run.home.extensionRuns.report(extension, { hook: 'beforeTool', error }, placeOf(run))
    return errorEnd(`Refused: the hook before it failed: ${messageOf(error)}`)
  }
}

function applied(run: NodeRun, call: ToolCall, said: NonNullable<BeforeTool>): ToolCall | ToolEnd {
  if ('refuse' in said) return errorEnd(`Refused: ${said.refuse}`)
  const json = toJson('answer' in said ? said.answer : said.input)
  const what = 'answer' in said ? 'answer' : 'input'
  if (!json.ok) return errorEnd(`Refused: the hook gave an ${what} that is not JSON: ${json.error}`)
  return 'answer' in said ? valueEnd(json.value, run.node.id) : { ...call, input: json.value }
}

/** The result as the extensions want it. One that fails and must not be gone on without withholds it. */
export async function hookedResult(run: NodeRun, end: ToolEnd): Promise<ToolEnd> {
  const call = run.node.input.call
  if (call === undefined || run.hooks?.has('afterTool') !== true || end.state !== 'finished') return end
  let hooked = end
  try {
    await callHooks<AfterTool>(run, {
      hook: 'afterTool',
      call: ({ hooks }, context) => hooks?.afterTool?.(shown(run, call), shownResult(hooked), context),
      use: ({ result, isError = false }) => {
        const json = toJson(result)
        if (!json.ok) throw new Error(`it gave a result that is not JSON: ${json.error}`)
        const made = valueEnd(json.value, run.node.id)
        hooked = isError ? { ...made, output: { ...made.output, isError } } : made
      },
    })
  } catch (error) {
    return errorEnd(`The result of ${call.name} is withheld: ${messageOf(error)}. The call itself has been made.`)
  }
  return hooked
}

/** Shows a copy of the call to those who may only see it. */
export function showCall(run: NodeRun, call: ToolCall, watching: readonly Voice[]): void {
  const { home, conversation } = run
  for (const { extension, place } of watching) {
    const failed = (error: unknown) =>
      home.logger.warn(`The hook onChildTool failed: ${messageOf(error)}`, { extension: extension.name, error })
    try {
      const child: ChildCall = { ...shown(run, call), path: [...conversation.path] }
      const seen = extension.hooks?.onChildTool?.(child, home.extensionRuns.contextOf(extension, place))
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

function shownResult({ output }: ToolEnd): ToolResult {
  return { content: output?.content ?? '', value: output?.value, isError: output?.isError === true }
}
