import { isSecretName, isSecretOption } from './secret-names.ts'
import { SECRET_MARK, withoutShapes } from './secret-shapes.ts'
import { Secrets } from './secrets.ts'

/**
 * A command line as people may see it and rows may keep it: without these secrets, without the values of options and
 * variables that are named like secrets (`--token abc`, `API_KEY=abc`, `-u me:abc`), and without what looks like a key.
 * What is run and what is decided is the command line itself, never this.
 */
export function shownCommand(words: readonly string[], secrets: readonly string[] = []): string {
  return shownWords(words, secrets).join(' ')
}

/** The same, word by word. Of a line with more secrets than anybody gives a program, only the program is shown. */
export function shownWords(words: readonly string[], secrets: readonly string[] = []): string[] {
  const own = [...new Set(secretsInCommand(words))]
  const size = own.reduce((sum, { length }) => sum + length, 0)
  if (own.length > MOST_SECRETS || size > MOST_SECRET) return [...words.slice(0, 1), SECRET_MARK]
  const known = new Secrets([...secrets, ...own])
  const marked = words.map((word, at) => {
    const value = secretIn(word, words[at - 1] ?? '')
    return value === '' ? word : word.slice(0, word.length - value.length) + SECRET_MARK
  })
  return known.cleanAll(marked).map((word) => withoutShapes(withoutOptions(word)))
}

const MOST_SECRETS = 50
/** Characters of all of them. */
const MOST_SECRET = 20_000

/** The values in a command line that are secrets by the names that stand before them. */
export function secretsInCommand(words: readonly string[]): string[] {
  const values = words.flatMap((word, at) => [secretIn(word, words[at - 1] ?? ''), passwordIn(word)])
  return values.filter((value) => value !== '')
}

/** The part of a word, up to its end, that is secret; empty for none. */
function secretIn(word: string, before: string): string {
  const [, dashes = '', name = '', value = ''] = /^(-{0,2})([A-Za-z_][\w.-]*)=(.+)$/s.exec(word) ?? []
  if (dashes === '' ? isSecretName(name) : isSecretOption(name)) return value
  const option = /^--?([A-Za-z][\w.-]*)$/.exec(before)?.[1]
  if (option === undefined || word.startsWith('-')) return ''
  if (isSecretOption(option)) return word
  const colon = USERS.has(option) ? word.indexOf(':') : -1
  return colon === -1 ? '' : word.slice(colon + 1)
}

/** Of an address: `postgres://me:abc@host`. */
function passwordIn(word: string): string {
  return /\/\/[^\s/?#"'@:]*:([^\s/?#"'@]+)@/.exec(word)?.[1] ?? ''
}

/** Options that take a user and a password. */
const USERS: ReadonlySet<string> = new Set(['u', 'user', 'proxy-user'])

/** A word may be a whole script: `sh -c "deploy --token abc"`. What a shell would run stays to be seen. */
function withoutOptions(word: string): string {
  if (!/\s/.test(word)) return word
  return word.replaceAll(OPTION, (whole: string, start: string, name: string) =>
    isSecretOption(name) ? `${start}${SECRET_MARK}` : whole,
  )
}

const OPTION = /((?:^|(?<=\s))--?([A-Za-z][\w.-]*)(?:=|[ \t]+))(?!-)(["']?)[\w.~+/=:,@%!-]+\3(?=$|[\s;|&)])/g
