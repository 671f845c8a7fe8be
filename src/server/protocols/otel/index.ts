// The public door `legate/otel`: traces and metrics of runs for OpenTelemetry. It needs the package `@opentelemetry/api`.

export { type IdGenerator, legateIds } from './ids.ts'
export { type OtelOptions, otel } from './write.ts'
