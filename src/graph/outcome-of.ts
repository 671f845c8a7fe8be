import { type Delegated, type EagerOutcome, type Outcome, type OutcomeRecord, withWords } from './outcome.ts'
import type { Id, Node, Turn } from './rows.ts'
import { refusedOutcome } from './turn/conclude.ts'

/** What is read of rows to tell how a run ended. */
export interface OutcomeReader {
  node(id: Id): Node | undefined
  turn(id: Id): Turn | undefined
}

/** A turn's outcome with its words, and with those of the children that its plan started. */
export function outcomeOf(reader: OutcomeReader, record: OutcomeRecord): Outcome {
  const node = record.answerNodeId === null ? undefined : reader.node(record.answerNodeId)
  const outcome = withWords(record, node?.output ?? {})
  if (record.delegations.length === 0) return outcome
  return { ...outcome, delegations: record.delegations.flatMap((one) => delegationOf(reader, one)) }
}

function delegationOf(reader: OutcomeReader, { taskId, field }: Delegated): EagerOutcome[] {
  const task = reader.node(taskId)
  if (task === undefined) return []
  const { status = task.state === 'rejected' ? 'denied' : 'cancelled', run_id = '', error } = summaryOf(task)
  const record = reader.turn(run_id)?.outcome ?? null
  if (record !== null) return [{ ...outcomeOf(reader, record), field }]
  const message = error?.message ?? task.failure?.message ?? 'It had not ended.'
  return [{ ...withWords({ ...refusedOutcome('unavailable', message), status }, {}), field }]
}

interface Summary {
  readonly status?: Outcome['status']
  readonly run_id?: Id
  readonly error?: { readonly message: string } | null
}

/** What the fold wrote of the child's outcome. */
function summaryOf({ output }: Node): Summary {
  return (output.metadata?.['outcome'] ?? {}) as Summary
}
