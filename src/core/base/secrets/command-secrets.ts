import { sha256 } from '../hash.ts'
import { isSecretName, isSecretOption, replaceKeys, SECRET_MARK } from './shapes.ts'

/**
 * Gives a command line as people decide on it and rows keep it. Hides the given secrets, and values that are certainly
 * credentials: long, random, and behind a name (`--token`, `API_KEY=`, `-u me:`, `Bearer`) or with the beginning of a key.
 * Never hides an ordinary word, nor, where a shell or an interpreter reads the line, anything but the given secrets: all of it
 * may run. Decisions and processes use the command line itself, never this text.
 */
export function shownWords(words: readonly string[], secrets: readonly string[] = []): string[] {
  const line = lineOf(words)
  // A secret may hold another one.
  const known = secrets.filter(isHideable).sort((one, other) => other.length - one.length)
  return words.map((word, at) => {
    if (line.started.has(at) && !SCRIPT.test(word)) return word
    const own = known.reduce((left, secret) => left.replaceAll(secret, () => fingerprint(secret)), word)
    return line.isRead ? own : withoutCredentials(own, words[at - 1] ?? '')
  })
}

/**
 * The mark in place of a value: `***(40:9f86)` stands for 40 characters whose hash begins with 9f86. So two values can be told
 * apart, and the hash is too short to tell whether a guess is right.
 */
export function fingerprint(value: string): string {
  return `${SECRET_MARK}(${value.length}:${sha256(value).slice(0, 4)})`
}

/** The values in a command line whose option or variable is named like a secret. */
export function secretsInCommand(words: readonly string[]): string[] {
  const values = words.flatMap((word, at) => [secretIn(word, words[at - 1] ?? ''), passwordIn(word)])
  return values.filter((value) => value !== '')
}

/** The parts of a command line that may run. */
interface Line {
  /** Places of the words that name a program: the first word, and the programs that it starts in turn. */
  readonly started: ReadonlySet<number>
  /** True where a shell or an interpreter reads a part of it. Then every word of it may run. */
  readonly isRead: boolean
}

function lineOf(words: readonly string[]): Line {
  const started = new Set([0])
  let isRead = false
  /** How many of the next words that are neither an option nor a variable name a program, or what it is to run. */
  let next = 0
  for (const [at, word] of words.entries()) {
    if (next > 0 && !word.startsWith('-') && !ASSIGNMENT.test(word)) {
      started.add(at)
      next--
    }
    const name = nameOf(word)
    isRead ||= READERS.test(name)
    if (STARTERS.test(name)) next = Math.max(next, WITH_COMMANDS.test(name) ? 2 : 1)
  }
  return { started, isRead: isRead || isCode(words) }
}

/** True where an interpreter is given code instead of a file. */
function isCode(words: readonly string[]): boolean {
  const at = words.findIndex((word) => INTERPRETERS.test(nameOf(word)))
  return at !== -1 && words.some((word, place) => place > at && CODE.test(word))
}

function nameOf(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1)
}

/** Programs that run their arguments. */
const STARTERS =
  /^(?:(?:ba|da|z|k|c|tc|fi|a|mk|pw|power)?sh|node(?:js)?|deno|bunx?|tsx|ts-node|python[\d.]*|pypy\d?|ruby|perl|php|lua(?:jit)?|java|npx|npm|pnpx?|pnpm|yarn|uvx?|pipx|env|xargs|sudo|doas|nice|nohup|timeout|setsid|stdbuf|time|busybox|docker|podman|ssh|cmd|find|make|go|cargo|dotnet)(?:\.exe)?$/
/** Programs that may run any of their words, or a part of one. */
const READERS =
  /^(?:(?:ba|da|z|k|c|tc|fi|a|mk|pw|power|tcl|wi)?sh|busybox|cmd|ssh|g?make|ninja|just|[gmn]?awk|sed|ed|ex|vim?|nvim|emacs|watch|parallel|flock|expect|eval|xargs|su|script|tmux|screen|gdb|strace|osascript|Rscript|R|julia)(?:\.exe)?$/
const INTERPRETERS =
  /^(?:node(?:js)?|deno|bunx?|tsx|ts-node|python[\d.]*|pypy[\d.]*|ruby|perl|php|lua(?:jit)?|java|jshell|groovy|npx|npm|pnpx?|pnpm|yarn)(?:\.exe)?$/
/** Options with code: `-c`, `-ne`, `-e'...'`, `--eval=...`. */
const CODE = /^(?:-[A-Za-z]{0,3}[ceEpr]|-[ceEpr]\W.*|-[ceEpr].*[\s;|&<>$`(){}"'].*|--(?:eval|print|call|run)(?:=.*)?)$/s
/** Programs whose first word is a command and whose second word is its subject, such as `npm run test`. */
const WITH_COMMANDS = /^(?:npm|pnpm|yarn|bun|deno|uv|pipx|docker|podman|go|cargo|dotnet)(?:\.exe)?$/
/** Characters that a shell or an interpreter acts on. */
const SCRIPT = /[\s;|&<>$`(){}!*?[\]\\"'#]/
const ASSIGNMENT = /^[A-Za-z_]\w*=/

function withoutCredentials(word: string, before: string): string {
  return replaceKeys(withoutNamed(withoutArgument(word, before)), shownCredential)
}

/** Hides the value of an option that is a word of its own. */
function withoutArgument(word: string, before: string): string {
  const option = /^--?([A-Za-z][\w.-]*)$/.exec(before)?.[1]
  if (option === undefined || word.startsWith('-')) return word
  if (isSecretOption(option)) return VALUE.test(word) ? shownCredential(word) : word
  const [, user = '', password = ''] = USERS.has(option) ? (/^([^:/]*:)(.+)$/s.exec(word) ?? []) : []
  return VALUE.test(password) ? `${user}${shownCredential(password)}` : word
}

const VALUE = /^[\w.=+~/-]+$/

/** Hides values behind a name: `API_KEY=abc`, `--token=abc`, `?sig=abc`; passwords in addresses; `Bearer abc`. */
function withoutNamed(word: string): string {
  return word
    .replace(NAMED, (...found: string[]) => {
      const [whole = '', start = '', dashes = '', name = '', value = ''] = found
      const isSecret = dashes === '' ? isSecretName(name) : isSecretOption(name)
      return isSecret ? `${start}${shownCredential(value)}` : whole
    })
    .replace(USER_INFO, (_, start: string, value: string) => `${start}${shownCredential(value)}@`)
    .replace(SCHEME, (_, start: string, value: string) => `${start}${shownCredential(value)}`)
}

/** Matches only characters that certainly belong to the value, and no path. */
const NAMED = /(?<![\w.-])((-{0,2})([A-Za-z_][\w.-]{0,100})=["']?)(?![./~])([\w.=+/-]+)/g
const USER_INFO = /(\/\/(?:[\w.~%+-]*:)?)([\w.~%+=-]+)@/g
const SCHEME = /(?<![\w.-])((?:Bearer|Basic)[ \t]+)(?![./~])([\w.=+/-]+)/gi

function shownCredential(value: string): string {
  return isCredential(value) ? fingerprint(value) : value
}

/**
 * True for a value that nobody writes by hand: at least 20 characters, in which letters and digits, or upper and lower case,
 * take turns as in random text. False for names, and for paths such as `node_modules/evil/index2.js`.
 */
function isCredential(value: string): boolean {
  if (value.length < LEAST_LENGTH || !/\d/.test(value) || (value.includes('/') && value.includes('.'))) return false
  return (value.match(TURNS)?.length ?? 0) * LEAST_TURNS >= value.length
}

/** A capital that begins a word is no turn. */
const TURNS = /\d(?=[A-Za-z])|[A-Za-z](?=\d)|[a-z](?=[A-Z](?![a-z]{2}))/g
const LEAST_LENGTH = 20
/** One turn in so many characters. Random text has one in two or three. */
const LEAST_TURNS = 5

/** False for a secret that could be a path or a part of a script: hiding it could hide a program. */
function isHideable(secret: string): boolean {
  return secret.length >= SHORTEST && !/^[./~]|\s/.test(secret)
}

/** A shorter value would match everywhere. */
const SHORTEST = 6

/** The secret part of a word, up to its end; empty for none. */
function secretIn(word: string, before: string): string {
  const [, dashes = '', name = '', value = ''] = /^(-{0,2})([A-Za-z_][\w.-]*)=(.+)$/s.exec(word) ?? []
  if (dashes === '' ? isSecretName(name) : isSecretOption(name)) return value
  const option = /^--?([A-Za-z][\w.-]*)$/.exec(before)?.[1]
  if (option === undefined || word.startsWith('-')) return ''
  if (isSecretOption(option)) return word
  const colon = USERS.has(option) ? word.indexOf(':') : -1
  return colon === -1 ? '' : word.slice(colon + 1)
}

/** Finds the password of an address: `postgres://me:abc@host`. */
function passwordIn(word: string): string {
  return /\/\/[^\s/?#"'@:]*:([^\s/?#"'@]+)@/.exec(word)?.[1] ?? ''
}

/** Options that take a user and a password. */
const USERS: ReadonlySet<string> = new Set(['u', 'user', 'proxy-user'])
