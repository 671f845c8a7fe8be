/** The names of attributes in traces that the environment asks for, as OpenTelemetry's variable has it. */
export function wantedVocabulary(): '1.41' | 'latest' {
  const wanted = process.env['OTEL_SEMCONV_STABILITY_OPT_IN'] ?? ''
  return wanted.split(',').some((word) => word.trim() === 'gen_ai_latest_experimental') ? 'latest' : '1.41'
}
