// The API of OpenTelemetry, which the program installs. Without it, importing the door says what to install.

import { DefinitionError } from '../../index.ts'

export const {
  context,
  isSpanContextValid,
  metrics,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} = await loadApi()

async function loadApi(): Promise<typeof import('@opentelemetry/api')> {
  try {
    return await import('@opentelemetry/api')
  } catch (cause) {
    const message = 'legate/otel needs the package @opentelemetry/api: npm install @opentelemetry/api'
    throw new DefinitionError('definition', message, { cause })
  }
}
