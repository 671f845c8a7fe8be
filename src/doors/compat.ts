import { InputError } from '../base/error.ts'
import type { FieldResult } from '../conversation/fields/field-handlers.ts'
import type { KeyOptions, RunFields } from '../conversation/fields/run-fields.ts'
import type { FieldOptions } from '../conversation/fields/wait-for-field.ts'
import type { FieldHandler, RawOf, Run } from '../conversation/run.ts'
import { RunHandle } from '../conversation/run-handle.ts'
import type { FieldPath, FieldValue } from '../fields/field-path.ts'

/**
 * Functions that you may know by these names from other frameworks. Each does what a method of the run does, with the checks
 * that those frameworks make: `run.field`, `run.fields`, `run.onField` and `run.settled` are the way of Legate.
 */
export type { ToolFunctionOptions } from '../agent/definition/agent.ts'
export type { KeyOptions } from '../conversation/fields/run-fields.ts'
export type { ShapedTool } from '../tool/tool.ts'

/** Waits for a field as `run.field` does. Checks before that the run has an output and, with `mustInPrompt`, the key. */
export function getKeyResult<Self extends Run, P extends FieldPath<RawOf<Self>>, Default = never>(
  run: Self,
  key: P,
  options: KeyOptions & FieldOptions<Default> = {},
): Promise<FieldValue<RawOf<Self>, P> | Default> {
  const value = fieldsOf(run, 'getKeyResult').getKeyResult(key, options)
  return value as Promise<FieldValue<RawOf<Self>, P> | Default>
}

/** Gives the first value of each key as [path, value], in the order in which they are complete. */
export function waitKeys<Self extends Run>(
  run: Self,
  keys: readonly FieldPath<RawOf<Self>>[],
  options: KeyOptions = {},
): AsyncIterable<[path: string, value: unknown]> {
  return fieldsOf(run, 'waitKeys').waitKeys(keys, options)
}

/** Calls the handler as `run.onField` does, after the checks of `getKeyResult`. Returns the run. */
export function whenKey<Self extends Run, P extends FieldPath<RawOf<Self>>>(
  run: Self,
  key: P,
  ...[handler, options = {}]: HandlerArguments<FieldValue<RawOf<Self>, P>>
): Self {
  const fields = fieldsOf(run, 'whenKey')
  fields.checkKeys([key], 'whenKey', options)
  fields.onField(key, handler)
  return run
}

/** Waits as `run.settled` does. Refuses a run that has no handlers. */
export async function startWaiter(run: Run): Promise<FieldResult[]> {
  return fieldsOf(run, 'startWaiter').startWaiter()
}

type HandlerArguments<Value> = [handler: FieldHandler<Value>, options?: KeyOptions]

function fieldsOf(run: Run, name: string): RunFields {
  if (run instanceof RunHandle) return run.reading
  throw new InputError('invalid_input', `${name}(run): the first argument is a run, as runtime.run() gives it.`)
}
