import type { Node } from '../rows.ts'

/** A task that no call asked for but an item of a plan: its turn ends with the plan, not with it. */
export function isEager({ kind, metadata }: Node): boolean {
  return kind === 'task' && metadata['eager'] !== undefined
}

/** The place of its item in the plan: `tasks[0]`. */
export function eagerField({ metadata }: Node): string {
  const { field } = (metadata['eager'] ?? {}) as { readonly field?: string }
  return field ?? ''
}
