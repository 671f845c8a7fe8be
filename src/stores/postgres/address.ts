const USUAL_SCHEMA = 'legate'

/** The schema that an address names. */
export function schemaIn(url: string | undefined): string {
  const named = url !== undefined && URL.canParse(url) ? new URL(url).searchParams.get('schema') : null
  return named === null || named === '' ? USUAL_SCHEMA : named
}

/** The address of a database as others may know it, without its password; undefined where it cannot be read. */
export function shownUrl(address: string, schema: string = schemaIn(address)): string | undefined {
  if (!URL.canParse(address)) return undefined
  const url = new URL(address)
  url.password = ''
  // A query may have a password, too.
  url.search = schema === USUAL_SCHEMA ? '' : `?schema=${encodeURIComponent(schema)}`
  return url.href
}
