/** A page or a value where a stream of events belongs: another server, a proxy or a login answered. */
export function isDocument(contentType: string): boolean {
  return /\b(?:html|json|xml)\b/i.test(contentType)
}

/** Not worth another try: what answered is not the provider, or does not stream. */
export function notAStream(contentType: string, beginning?: string): Error {
  const said = beginning === undefined ? '' : `: ${beginning === '' ? 'nothing' : beginning}`
  return new Error(
    `the server answered with ${contentType} where a stream of events (text/event-stream) belongs${said} -- Is the address that of its API, with the path, such as /v1?`,
  )
}
