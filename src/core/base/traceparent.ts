const FORM = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** True for a place in a trace of the form that everybody writes: W3C Trace Context, version 00. */
export function isTraceparent(text: unknown): text is string {
  return typeof text === 'string' && FORM.test(text)
}
