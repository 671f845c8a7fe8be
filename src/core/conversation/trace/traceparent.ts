// The place of a caller in a trace, as W3C Trace Context writes it. A run keeps it among its attributes.

import { InputError } from '../../base/error.ts'
import { isTraceparent } from '../../base/traceparent.ts'
import type { Turn } from '../../graph/rows.ts'
import type { Telemetry } from '../../tool/telemetry.ts'

const NAME = 'traceparent'

/** The caller's `traceparent` among the attributes of a run; null where there is none. */
export function foundTraceparent(attributes: NonNullable<Turn['attributes']>): string | null {
  const given = attributes[NAME]
  return isTraceparent(given) ? given : null
}

/** The attributes of a run that is started from this place. */
export function withTraceparent(attributes: Turn['attributes'], traceparent: string): Turn['attributes'] {
  return { ...attributes, [NAME]: traceparent }
}

/** The caller's place in a trace: as it says, or where its code runs. */
export function readTraceparent(given: string | undefined, telemetry: Telemetry | null): string | null {
  if (given === undefined) return telemetry?.isOn() === true ? telemetry.traceparent() : null
  if (isTraceparent(given)) return given
  const message = 'run(agent, input, { traceparent }): it has the form 00-<32 digits>-<16 digits>-01.'
  throw new InputError('invalid_input', message)
}
