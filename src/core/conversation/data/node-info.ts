import { sizeOf } from '../../base/json.ts'
import { textOf } from '../../graph/content.ts'
import { rangeOf } from '../../graph/lane.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Failure, Id, Node, NodeInput, NodeMarks, NodeOutput } from '../../graph/rows.ts'
import { seenOf } from '../../rules/turn/seen-of.ts'
import { type GraphNode, graphNode } from './graph-data.ts'

/** A node with its contents, as far as its row holds them: a long result is cut, and `runtime.result` has all of it. */
export interface NodeInfo extends GraphNode {
  readonly rootId: Id
  /** Agent names from the root, root included. */
  readonly path: readonly string[]
  /** The message, the call, or the value that it was made with. */
  readonly input: NodeInput
  /** Its result; empty until it has one. */
  readonly output: NodeOutput
  /** Why it failed; null where it did not. */
  readonly failure: Failure | null
  /** Later marks by people: replaced, excluded, deleted, asked to stop. */
  readonly marks: NodeMarks | null
  /** The hash of what it asks people now, or of its uncertain call: an answer names it. Null where it asks nothing. */
  readonly seen: string | null
  /** The bytes of its whole result, where the row holds only the beginning; else null. */
  readonly wholeBytes: number | null
}

export function nodeInfo(tree: TreeReader, node: Node): NodeInfo {
  const conversation = tree.conversation(node.conversationId)
  const lane = tree.conversation(node.laneId)?.lane ?? null
  const ordinal = tree.turn(node.turnId)?.ordinal ?? 0
  const link = tree.linksOf(node.turnId).findLast(({ taskId }) => taskId === node.id)
  return {
    ...graphNode(tree, node, rangeOf(lane, ordinal) === undefined, link),
    rootId: node.rootId,
    path: conversation?.path ?? [],
    input: node.input,
    output: node.output,
    failure: node.failure,
    marks: node.marks,
    seen: seenOf(node),
    wholeBytes: node.output.bodyRef === undefined ? null : (node.output.bytes ?? null),
  }
}

/** All of a node's result as text. */
export interface WholeResult {
  readonly nodeId: Id
  readonly text: string
  /** Its size in UTF-8. */
  readonly bytes: number
  /** True where the call failed or was refused. */
  readonly isError: boolean
}

export function wholeResult(tree: TreeReader, { id, output, input }: Node): WholeResult {
  const body = output.bodyRef === undefined ? undefined : tree.body(output.bodyRef)
  const text = body ?? textOf(output.content ?? input.content ?? '')
  return { nodeId: id, text, bytes: sizeOf(text), isError: output.isError === true }
}
