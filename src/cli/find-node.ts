import type { Node, Store, Turn } from '../index.ts'
import { CliError, EXIT } from './command.ts'
import { findIds, only, shortId } from './find-run.ts'
import { oneLine } from './terminal/clean.ts'
import { nodeLine } from './watch/node-lines.ts'

/** The node of a run's conversation that is meant by the ending of an id. */
export function findNode(store: Store, { conversationId, id: runId }: Turn, ending: string): Node {
  const named = findIds(store, ending).flatMap(({ id, type }) => (type === 'node' ? (store.node(id) ?? []) : []))
  const own = named.filter((node) => node.conversationId === conversationId)
  if (own.length === 0) {
    const where = named.length === 0 ? 'No node in this store' : 'No node of this conversation'
    const look = `legate show ${shortId(runId)} --nodes lists them.`
    throw new CliError(`${where} has an id that ends in "${oneLine(ending)}". ${look}`, EXIT.usage)
  }
  return only(own, ending, nodeLine)
}

/** The one node of a run that fits; else a message that says what to do. */
export function onlyNode(store: Store, turn: Turn, { fits, none }: Wanted): Node {
  const found = store.nodesOf(turn.id).filter((node) => node.marks?.replacedBy == null && fits(node))
  const [first, ...others] = found
  if (first === undefined) throw new CliError(none, EXIT.usage)
  if (others.length === 0) return first
  const lines = found.map((node) => `\n  ${nodeLine(node)}`).join('')
  throw new CliError(`More than one node of ${shortId(turn.id)} can be meant:${lines}\nName one.`, EXIT.usage)
}

interface Wanted {
  readonly fits: (node: Node) => boolean
  readonly none: string
}
