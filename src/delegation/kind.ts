import type { NodeRun } from '../agent/node-run.ts'
import { toJson } from '../base/json.ts'
import { interruptedEnd, type NodeEnd } from '../graph/end-node.ts'
import type { KindFlags } from '../graph/kinds.ts'
import type { Reader } from '../graph/reader.ts'
import { planResult } from '../graph/result.ts'
import type { Node } from '../graph/rows.ts'
import type { ToolContext } from '../tool/tool.ts'
import { CalledChildren } from './called-children.ts'

export interface KindContext extends ToolContext {
  /** Rows as they are now: what the node may build on. */
  readonly graph: Reader
}

/** A node kind of the user's own. It is a task unless its flags say otherwise. */
export interface KindDefinition extends Partial<KindFlags> {
  /** What it returns is the node's output; a throw ends the node as errored. Children only through `context.delegate`. */
  execute(node: Node, context: KindContext): unknown
}

/** Runs a node of a user's kind. */
export async function runKind(run: NodeRun, kind: KindDefinition): Promise<void> {
  const { node, work, home } = run
  const children = new CalledChildren(run)
  const end = await tryKind(run, kind, children)
  children.end()
  if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => planResult(draft, work.claim, end),
  })
}

async function tryKind(
  { node, work, home }: NodeRun,
  kind: KindDefinition,
  children: CalledChildren,
): Promise<NodeEnd> {
  try {
    const graph = home.ledger.store
    const value = await children.inside((context) =>
      kind.execute(node, Object.defineProperty(context, 'graph', { value: graph }) as KindContext),
    )
    const json = toJson(value)
    if (!json.ok) return errored('unserialisable', json.error)
    const content = typeof json.value === 'string' ? json.value : json.text
    return { state: 'finished', output: { value: json.value, content } }
  } catch (error) {
    if (work.stopCause !== null) return interruptedEnd(node, home.causeOf(error))
    return errored('kind', home.causeOf(error))
  }
}

function errored(code: string, message: string): NodeEnd {
  return { state: 'errored', failure: { code, message } }
}
