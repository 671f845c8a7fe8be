import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { toJson } from '../../base/json.ts'
import { textOf } from '../../graph/content.ts'
import type { KindFlags } from '../../graph/kinds.ts'
import type { Node } from '../../graph/rows.ts'
import { interruptedEnd, type NodeEnd } from '../../rules/turn/end-node.ts'
import { planResult } from '../../rules/turn/result.ts'
import { type CodeResult, type Watch, watchedContext } from '../../tool/tape.ts'
import type { KindContext } from '../../tool/tool.ts'
import { CalledChildren } from '../called-children.ts'

/** A node kind that you define. It is a task unless its flags say otherwise. */
export interface KindDefinition extends Partial<KindFlags> {
  /**
   * Returns the node's output. If it throws, the node ends as errored. It may start children only through
   * `context.delegate`.
   */
  execute(node: Node, context: KindContext): unknown
}

/** Runs a node of a user-defined kind. */
export async function runKind(run: NodeRun, kind: KindDefinition): Promise<void> {
  const { node, work, home } = run
  const children = new CalledChildren(run)
  if (node.epoch > 1) await children.lookBack()
  const end = await tryKind(run, kind, children)
  children.end()
  if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => planResult(draft, work.claim, end),
  })
}

async function tryKind(run: NodeRun, kind: KindDefinition, children: CalledChildren): Promise<NodeEnd> {
  const { node, work, home } = run
  const code = (watch?: Watch) => runCode(run, kind, children, watch)
  const input = node.input.value ?? null
  const running = { node, work, current: children, name: node.kind, input }
  const given = home.live.tape === null ? await code() : await home.live.tape.run(running, code)
  if ('value' in given) {
    const content = typeof given.value === 'string' ? given.value : JSON.stringify(given.value)
    return { state: 'finished', output: { value: given.value, content } }
  }
  if ('error' in given) return errored(given.code ?? 'kind', textOf(given.error))
  return interruptedEnd(node, 'interrupted' in given ? given.interrupted : 'It was asked to stop.')
}

async function runCode(
  { tree, node, work, home }: NodeRun,
  kind: KindDefinition,
  children: CalledChildren,
  watch: Watch | undefined,
): Promise<CodeResult> {
  try {
    const value = await children.inside((context) =>
      kind.execute(
        node,
        Object.defineProperty(watchedContext(context, watch), 'graph', { value: tree }) as KindContext,
      ),
    )
    const json = toJson(value)
    return json.ok ? { value: json.value } : { error: json.error, code: 'unserialisable' }
  } catch (error) {
    if (work.stopCause !== null) return { interrupted: home.settings.causeOf(error) }
    return { error: home.settings.causeOf(error) }
  }
}

function errored(code: string, message: string): NodeEnd {
  return { state: 'errored', failure: { code, message } }
}
