/** As a name of a source may be: `Context7 Docs` is `context7_docs`. */
export function sourceName(given: string): string {
  if (/^[a-zA-Z0-9][a-zA-Z0-9-]*(?:_[a-zA-Z0-9-]+)*$/.test(given) && given.length <= LONGEST) return given
  const plain = given
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '_')
    .replace(/^[_-]+|_+$/g, '')
  return plain.slice(0, LONGEST).replace(/_+$/, '') || 'extension'
}

const LONGEST = 40
