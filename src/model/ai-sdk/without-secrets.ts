/** Pieces of a secret this long are taken out wherever they stand; shorter ones may be words. */
const PIECE = 12
const SHORTEST = 4
const LONGEST = 8_192

/**
 * A text that may be kept in records: without these secrets, pieces of them and their encoded forms, and without
 * what looks like a secret that nobody told us.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const forms = new Set(secrets.filter(({ length }) => length >= SHORTEST && length <= LONGEST).flatMap(formsOf))
  return withoutShapes(withoutForms(text, [...forms]))
}

/** As it is, and as URLs, JSON and base64 have it. */
function formsOf(secret: string): string[] {
  const coded = [0, 1, 2].map((offset) => base64Of(secret, offset))
  const plain = [secret, encodeURIComponent(secret.toWellFormed()), JSON.stringify(secret).slice(1, -1)]
  const urlSafe = coded.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [...plain, ...coded, ...urlSafe].filter(({ length }) => length >= SHORTEST)
}

/** What is the same whatever stands around it; `offset` is where it begins in a group of three bytes. */
function base64Of(secret: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)])
  const coded = bytes.toString('base64').replace(/=+$/, '')
  return coded.slice(offset === 0 ? 0 : offset + 1, bytes.length % 3 === 0 ? undefined : -1)
}

function withoutForms(text: string, forms: readonly string[]): string {
  const hidden = new Uint8Array(text.length)
  for (const form of forms) {
    const length = Math.min(form.length, PIECE)
    for (let from = 0; from + length <= form.length; from++) {
      const piece = form.slice(from, from + length)
      for (let at = text.indexOf(piece); at !== -1; at = text.indexOf(piece, at + 1)) hidden.fill(1, at, at + length)
    }
  }
  let shown = ''
  for (let at = 0; at < text.length; at++) {
    if (hidden[at] === 0) shown += text[at]
    else if (hidden[at - 1] !== 1) shown += '***'
  }
  return shown
}

/** Providers repeat keys in messages, more or less hidden. */
function withoutShapes(text: string): string {
  return text
    .replaceAll(/\/\/[^\s/?#"']*@/g, '//***@')
    .replaceAll(/\b(?:(?:sk|pk|rk|gsk|xai)[-_]|AIza)[-_A-Za-z0-9*]{8,}/g, '***')
    .replaceAll(/\b(Bearer|Basic)\s+[^\s"']+/gi, '$1 ***')
    .replaceAll(/((?:key|token|secret|password|sig)=["']?)[^&\s"']+/gi, '$1***')
    .replaceAll(/((?:key|token|secret|password)["']?\s*:\s*["']?)(?=[^\s"']*\d)[-_.~+/=*A-Za-z0-9]{16,}/gi, '$1***')
}
