// Traces runs where the package of OpenTelemetry is installed; else says what somebody who forgot it reads.
import { createRuntime } from 'legate'
import { otel } from 'legate/otel'

try {
  await createRuntime({ telemetry: otel() }).close()
  console.log('It traces.')
} catch ({ name, code, message }) {
  console.log(`${name} ${code}: ${message}`)
}
