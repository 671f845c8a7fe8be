import { isSecretName, isSecretOption, SECRET_MARK, withoutKeys } from './shapes.ts'

/**
 * Gives a command line as people may see it and rows may keep it: without the given secrets, without the values of options and
 * variables that are named like secrets (`--token abc`, `API_KEY=abc`, `-u me:abc`), and without keys. A mark replaces exactly
 * one value, and never a part that could run: a possible program, path or script stays visible. Decisions and processes use the
 * command line itself, never this text.
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
  for (const [at, word] of words.entries()) {
    const name = word.slice(word.lastIndexOf('/') + 1)
    if (!STARTERS.test(name)) continue
    isRead ||= SHELLS.test(name)
    for (const place of startedBehind(words, at, WITH_COMMANDS.test(name) ? 2 : 1)) started.add(place)
  }
  const isScript = started.size > 1 && words.some((word, at) => at > 0 && SCRIPT.test(word))
  return { started, isRead: isRead || isScript }
}

/** The places of the next `most` words that are neither an option nor a variable. */
function startedBehind(words: readonly string[], from: number, most: number): number[] {
  const places: number[] = []
  for (let at = from + 1; at < words.length && places.length < most; at++) {
    const word = words[at] ?? ''
    if (!word.startsWith('-') && !ASSIGNMENT.test(word)) places.push(at)
  }
  return places
}

/** Programs that run their arguments. */
const STARTERS =
  /^(?:(?:ba|da|z|k|c|tc|fi|a|mk|pw|power)?sh|node(?:js)?|deno|bunx?|tsx|ts-node|python[\d.]*|pypy\d?|ruby|perl|php|lua(?:jit)?|java|npx|npm|pnpx?|pnpm|yarn|uvx?|pipx|env|xargs|sudo|doas|nice|nohup|timeout|setsid|stdbuf|time|busybox|docker|podman|ssh|cmd|find|make|go|cargo|dotnet)(?:\.exe)?$/
const SHELLS = /^(?:(?:ba|da|z|k|c|tc|fi|a|mk|pw|power)?sh|busybox|cmd|ssh)(?:\.exe)?$/
/** Programs whose first word is a command and whose second word is its subject, such as `npm run test`. */
const WITH_COMMANDS = /^(?:npm|pnpm|yarn|bun|deno|uv|pipx|docker|podman|go|cargo|dotnet)(?:\.exe)?$/
/** Characters that a shell or an interpreter acts on. */
const SCRIPT = /[\s;|&<>$`(){}!*?[\]\\"'#]/
const ASSIGNMENT = /^[A-Za-z_]\w*=/

/** Hides the value of an option that is a word of its own, unless it is a path or could run. */
function withoutArgument(word: string, before: string): string {
  const option = /^--?([A-Za-z][\w.-]*)$/.exec(before)?.[1]
  if (option === undefined || word.startsWith('-')) return word
  if (isSecretOption(option)) return VALUE.test(word) ? SECRET_MARK : word
  const [, user = '', password = ''] = USERS.has(option) ? (/^([^:/]*:)(.+)$/.exec(word) ?? []) : []
  return VALUE.test(password) ? `${user}${SECRET_MARK}` : word
}

const VALUE = /^[\w=+~-]+$/

/** Hides values behind a name: `API_KEY=abc`, `--token=abc`, `?sig=abc`; passwords in addresses; `Bearer abc`. */
function withoutNamed(word: string, isRead: boolean): string {
  return word
    .replace(NAMED, (...found: string[]) => {
      const [whole = '', start = '', dashes = '', name = ''] = found
      // A shell could run the variable's value.
      if (dashes === '' ? !isSecretName(name) || (isRead && word.includes('$')) : !isSecretOption(name)) return whole
      return `${start}${SECRET_MARK}`
    })
    .replace(USER_INFO, `//${SECRET_MARK}@`)
    .replace(SCHEME, `$1${SECRET_MARK}`)
}

/** Matches only characters that certainly belong to the value, and no path. */
const NAMED = /(?<![\w.-])((-{0,2})([A-Za-z_][\w.-]{0,100})=["']?)(?![./~])[\w.=+/-]+/g
const USER_INFO = /\/\/(?:[\w.~%+-]*:)?[\w.~%+=-]+@/g
const SCHEME = /(?<![\w.-])((?:Bearer|Basic)[ \t]+)(?![./~])[\w.=+/-]+/gi

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
