import type { Id, Node } from '../rows.ts'

/** A task that no call asked for but an item of a plan: its turn ends with the plan, not with it. */
export function isEager({ kind, metadata }: Node): boolean {
  return kind === 'task' && metadata['eager'] !== undefined
}

/** The place of its item in the plan: `tasks[0]`. */
export function eagerField({ metadata }: Node): string {
  const { field } = (metadata['eager'] ?? {}) as { readonly field?: string }
  return field ?? ''
}

/** The node whose code asks with this task; undefined for any other task. */
export function askerOf({ kind, metadata }: Node): Id | undefined {
  const asker = kind === 'task' ? metadata['asked_by'] : undefined
  return typeof asker === 'string' ? asker : undefined
}

/** A task beside the message it is of: its turn ends with the message, not with it. */
export function isBeside(node: Node): boolean {
  return isEager(node) || askerOf(node) !== undefined
}
