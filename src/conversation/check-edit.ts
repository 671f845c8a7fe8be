import { InputError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { describeIssues, readSchema } from '../base/schema.ts'
import type { Node } from '../graph/rows.ts'
import { approvalOf } from '../graph/turn/approve.ts'

/** Throws an InputError for arguments that a call which awaits approval could not be made with: nothing is answered by them. */
export async function checkEdit(node: Node, edit: Json): Promise<void> {
  const { schema } = approvalOf(node)
  const { call } = node.input
  if (node.state !== 'awaiting_approval' || call === undefined) return
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return
  const checked = await readSchema(schema, `The arguments of ${call.name}`).validate(edit)
  if (checked.ok) return
  const issues = describeIssues(checked.issues)
  throw new InputError('invalid_input', `Nothing was answered: the new arguments of ${call.name} are wrong. ${issues}`)
}
