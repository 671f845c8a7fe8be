// Where the operations of each subject are: loaded when the first of them is used.

import { NotFoundError } from '../base/error.ts'
import type { Operation } from './operation.ts'

/** An operation by its place in the table. */
export interface OperationName {
  readonly subject: string
  readonly name: string
}

type Loaded = Readonly<Record<string, Operation>>

const SUBJECTS: Readonly<Record<string, () => Promise<Loaded>>> = {
  agents: async () => (await import('./agents.ts')).AGENTS,
  runs: async () => (await import('./runs.ts')).RUNS,
  conversations: async () => (await import('./conversations.ts')).CONVERSATIONS,
  lanes: async () => (await import('./conversations.ts')).LANES,
  history: async () => (await import('./history.ts')).HISTORY,
  trees: async () => (await import('./trees.ts')).TREES,
  nodes: async () => (await import('./nodes.ts')).NODES,
  inbox: async () => (await import('./inbox.ts')).INBOX,
  owners: async () => (await import('./owners.ts')).OWNERS,
  usage: async () => (await import('./usage.ts')).USAGE,
  processes: async () => (await import('./processes.ts')).PROCESSES,
}

const loaded: Map<string, Loaded> = new Map()

/** The operation of that name: at once where its subject is loaded. */
export function findOperation({ subject, name }: OperationName): Operation | Promise<Operation> {
  const known = loaded.get(subject)
  return known === undefined ? load(subject, name) : named(known, name)
}

async function load(subject: string, name: string): Promise<Operation> {
  const found = (await SUBJECTS[subject]?.()) ?? {}
  loaded.set(subject, found)
  return named(found, name)
}

function named(operations: Loaded, name: string): Operation {
  const found = operations[name]
  if (found === undefined) throw new NotFoundError('not_found', `There is no operation ${name}.`)
  return found
}
