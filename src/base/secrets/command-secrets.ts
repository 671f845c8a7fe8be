import { isSecretName, isSecretOption, SECRET_MARK, withoutKeys } from './shapes.ts'

/**
 * A command line as people may see it and rows may keep it: without these secrets, without the values of options and
 * variables that are named like secrets (`--token abc`, `API_KEY=abc`, `-u me:abc`), and without keys. A mark never stands
 * for more than the one value, and for nothing that could be run: what may be a program, a path, a script or a part of
 * one is shown. What is run and what is decided is the command line itself, never this.
 */
export function shownWords(words: readonly string[], secrets: readonly string[] = []): string[] {
  const line = lineOf(words)
  const hidden = secrets.filter(isHideable)
  return words.map((word, at) => {
    if (line.started.has(at) && !SCRIPT.test(word)) return word
    const own = line.isRead ? word : withoutArgument(word, words[at - 1] ?? '')
    const clean = withoutKeys(withoutNamed(own, line.isRead))
    return hidden.reduce((left, secret) => left.replaceAll(secret, SECRET_MARK), clean)
  })
}

/** The values in a command line that are secrets by the names that stand before them. */
export function secretsInCommand(words: readonly string[]): string[] {
  const values = words.flatMap((word, at) => [secretIn(word, words[at - 1] ?? ''), passwordIn(word)])
  return values.filter((value) => value !== '')
}

/** What of a command line is run. */
interface Line {
  /** Places of the words that say what is started: the program; behind one that starts others, what it starts. */
  readonly started: ReadonlySet<number>
  /** Is a part of it read by a shell or an interpreter? Then every word of it may be run. */
  readonly isRead: boolean
}

function lineOf(words: readonly string[]): Line {
  const started = new Set([0])
  let isRead = false
  for (const [at, word] of words.entries()) {
    const name = word.slice(word.lastIndexOf('/') + 1)
    if (!STARTERS.test(name)) continue
    isRead ||= SHELLS.test(name)
    for (const place of startedBehind(words, at, WITH_COMMANDS.test(name) ? 2 : 1)) started.add(place)
  }
  const isScript = started.size > 1 && words.some((word, at) => at > 0 && SCRIPT.test(word))
  return { started, isRead: isRead || isScript }
}

/** The first so many words behind a place that are neither an option nor a variable. */
function startedBehind(words: readonly string[], from: number, most: number): number[] {
  const places: number[] = []
  for (let at = from + 1; at < words.length && places.length < most; at++) {
    const word = words[at] ?? ''
    if (!word.startsWith('-') && !ASSIGNMENT.test(word)) places.push(at)
  }
  return places
}

/** Programs that run what they are given. */
const STARTERS =
  /^(?:(?:ba|da|z|k|c|tc|fi|a|mk|pw|power)?sh|node(?:js)?|deno|bunx?|tsx|ts-node|python[\d.]*|pypy\d?|ruby|perl|php|lua(?:jit)?|java|npx|npm|pnpx?|pnpm|yarn|uvx?|pipx|env|xargs|sudo|doas|nice|nohup|timeout|setsid|stdbuf|time|busybox|docker|podman|ssh|cmd|find|make|go|cargo|dotnet)(?:\.exe)?$/
const SHELLS = /^(?:(?:ba|da|z|k|c|tc|fi|a|mk|pw|power)?sh|busybox|cmd|ssh)(?:\.exe)?$/
/** Of these the word behind says what they do, and the next with what. */
const WITH_COMMANDS = /^(?:npm|pnpm|yarn|bun|deno|uv|pipx|docker|podman|go|cargo|dotnet)(?:\.exe)?$/
/** What a shell or an interpreter would do something with. */
const SCRIPT = /[\s;|&<>$`(){}!*?[\]\\"'#]/
const ASSIGNMENT = /^[A-Za-z_]\w*=/

/** The value of an option that stands in a word of its own. Not a path, nor anything else that could be run. */
function withoutArgument(word: string, before: string): string {
  const option = /^--?([A-Za-z][\w.-]*)$/.exec(before)?.[1]
  if (option === undefined || word.startsWith('-')) return word
  if (isSecretOption(option)) return VALUE.test(word) ? SECRET_MARK : word
  const [, user = '', password = ''] = USERS.has(option) ? (/^([^:/]*:)(.+)$/.exec(word) ?? []) : []
  return VALUE.test(password) ? `${user}${SECRET_MARK}` : word
}

const VALUE = /^[\w=+~-]+$/

/** Values behind a name: `API_KEY=abc`, `--token=abc`, `?sig=abc`; passwords in addresses; `Bearer abc`. */
function withoutNamed(word: string, isRead: boolean): string {
  return word
    .replace(NAMED, (...found: string[]) => {
      const [whole = '', start = '', dashes = '', name = ''] = found
      // A shell could run the variable.
      if (dashes === '' ? !isSecretName(name) || (isRead && word.includes('$')) : !isSecretOption(name)) return whole
      return `${start}${SECRET_MARK}`
    })
    .replace(USER_INFO, `//${SECRET_MARK}@`)
    .replace(SCHEME, `$1${SECRET_MARK}`)
}

/** As far as a value goes for certain, and no path. */
const NAMED = /(?<![\w.-])((-{0,2})([A-Za-z_][\w.-]{0,100})=["']?)(?![./~])[\w.=+/-]+/g
const USER_INFO = /\/\/(?:[\w.~%+-]*:)?[\w.~%+=-]+@/g
const SCHEME = /(?<![\w.-])((?:Bearer|Basic)[ \t]+)(?![./~])[\w.=+/-]+/gi

/** A secret that could be taken for a path, or for a part of a script, is shown. */
function isHideable(secret: string): boolean {
  return secret.length >= SHORTEST && !/^[./~]|\s/.test(secret)
}

/** A shorter value would be found everywhere. */
const SHORTEST = 6

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
