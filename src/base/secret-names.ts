/** Is a variable, header or field of this name one for secrets: `GITHUB_PAT`, `x-api-key`, `dbPassword`? */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name)
  if (words.length === 1 && PLACES.has(words[0] ?? '')) return false
  return words.some(isSecretWord) || SESSIONS.test(words.join('_'))
}

/** Does an option of this name take a secret? `--api-key` does, `--token-file` and `--pass-with-no-tests` do not. */
export function isSecretOption(name: string): boolean {
  return isSecretWord(wordsOf(name).at(-1) ?? '')
}

function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter((word) => word !== '')
}

function isSecretWord(word: string): boolean {
  return WORDS.has(word) || PARTS.test(word)
}

/** Directories of shells. */
const PLACES: ReadonlySet<string> = new Set(['PWD', 'OLDPWD'])
const WORDS: ReadonlySet<string> = new Set([
  ...['KEY', 'KEYS', 'PASS', 'PWD', 'PAT', 'AUTH', 'AUTHORIZATION', 'COOKIE', 'COOKIES', 'JWT', 'SIG', 'SIGNATURE'],
])
/** Long enough to mean it inside of a word, as in `PGPASSWORD`; `MAX_TOKENS` is a number. */
const PARTS = /PASSW(?:OR)?D|PASSPHRASE|SECRET|TOKEN(?!S|IZ)|CREDENTIAL|(?:API|ACCESS|PRIVATE|SSH)KEYS?$/
/** Of password managers. */
const SESSIONS = /^(?:BW|OP)_SESSION/
