import { isVisible, visible } from '../base/text.ts'

/**
 * Joins the words of a command line to a text that can be read in one way only: plain words as they are, all others in quotes.
 * `readWords` gives the same words back, and so does a shell.
 */
export function quoteWords(words: readonly string[]): string {
  return words.map((word, at) => quoteWord(word, at === 0)).join(' ')
}

/**
 * Joins words for people: a word with invisible characters is written as `$'one\ntwo'`, in which a backslash stands before each
 * of them, and before each backslash and quote. Nothing is left out, and no two command lines look alike.
 */
export function showWords(words: readonly string[]): string {
  return words
    .map((word, at) => (isVisible(word) ? quoteWord(word, at === 0) : `$'${visible(word.replace(/[\\']/g, '\\$&'))}'`))
    .join(' ')
}

/**
 * Splits a text in which a shell would find nothing but words. Undefined for a text with variables, pipes, redirections,
 * patterns, lists or open quotes.
 */
export function readWords(text: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  PART.lastIndex = 0
  while (PART.lastIndex < text.length) {
    const found = PART.exec(text)
    if (found === null) return undefined
    const [, blank, bare, single, double] = found
    if (blank === undefined) word = `${word ?? ''}${bare ?? single ?? double ?? ''}`
    else if (word !== undefined) {
      words.push(word)
      word = undefined
    }
  }
  return word === undefined ? words : [...words, word]
}

/**
 * The form of a command line that rules match: its words, separated by a character that no word can hold. So `ls *` is about
 * the program `ls`, and never about one whose name begins with `ls` and a space.
 */
export function keyOfWords(words: readonly string[]): string {
  return words.map((word) => word.replaceAll('*', LITERAL_STAR)).join(BETWEEN)
}

/** The prefix for a program that runs in another folder: no word of a command line looks like `&&`. */
export function placeWords(folder: string): string {
  return `cd ${quoteWords([folder])} && `
}

/** The prefix for a folder, as people see it. */
export function showPlace(folder: string): string {
  return `cd ${showWords([folder])} && `
}

/** Splits a folder prefix from the rest of a text. */
export function splitPlace(text: string): { readonly folder: string | null; readonly rest: string } {
  const [whole = '', named = ''] = PLACE.exec(text) ?? []
  const [folder = null] = whole === '' ? [] : (readWords(named) ?? [])
  return folder === null ? { folder, rest: text } : { folder, rest: text.slice(whole.length) }
}

/** The prefix for a folder, in the form that rules match. */
export function keyOfPlace(folder: string): string {
  return `${keyOfWords(['cd', folder])}${BETWEEN}${THEN}${BETWEEN}`
}

/**
 * Turns a rule's pattern into the form that rules match: a `*` outside of quotes stands for any text. Undefined where its
 * quotes are open.
 */
export function keyOfPattern(pattern: string): string | undefined {
  const words: string[] = []
  let word: string | undefined
  PATTERN_PART.lastIndex = 0
  const text = pattern.toWellFormed()
  while (PATTERN_PART.lastIndex < text.length) {
    const found = PATTERN_PART.exec(text)
    if (found === null) return undefined
    const [, blank, bare, single, double] = found
    if (blank === undefined) word = `${word ?? ''}${bare ?? (single ?? double ?? '').replaceAll('*', LITERAL_STAR)}`
    else {
      words.push(word ?? '')
      word = undefined
    }
  }
  return placedKey(word === undefined ? words : [...words, word])
}

/** Reads `cd /workspace/app && make` as a program in that folder. */
function placedKey(words: readonly string[]): string {
  if (words[0] === 'cd' && words[2] === '&&' && words.length > 3) {
    return [...words.slice(0, 2), THEN, placedKey(words.slice(3))].join(BETWEEN)
  }
  const [program = '', ...args] = words
  return [program.startsWith('*') ? program : plainProgram(program), ...args].join(BETWEEN)
}

/**
 * Normalizes the name of a program. One with a slash is a path: without `.`, `..` and `//` inside, and with `./` where it is
 * below the current folder.
 */
export function plainProgram(name: string): string {
  if (!name.includes('/')) return name
  const isAbsolute = name.startsWith('/')
  const kept: string[] = []
  for (const segment of name.split('/')) {
    const isUp = segment === '..' && (kept.length === 0 || kept.at(-1) === '..')
    if (segment === '' || segment === '.' || (isUp && isAbsolute)) continue
    if (segment === '..' && !isUp) kept.pop()
    else kept.push(segment)
  }
  const rest = kept.join('/')
  if (isAbsolute) return `/${rest}`
  return kept[0] === '..' ? rest : `./${rest}`
}

/** Separates words. No word holds it: a program cannot be given a NUL. */
const BETWEEN = '\0'
const LITERAL_STAR = '\ud800'
/** Separates a folder from the program that runs there. No word holds it: words are well-formed. */
const THEN = '\ud801'

/** Matches blanks, plain characters, or a quoted text without escapes. */
const PART = /([ \t]+)|([\w@%+=:,./-]+)|'([^']*)'|"([^"$`\\!]*)"/y
/** People write rules, so everything but blanks and quotes stands for itself. */
const PATTERN_PART = /([ \t]+)|([^ \t'"]+)|'([^']*)'|"([^"]*)"/y
const PLACE = /^cd ((?:[\w@%+=:,./-]|'[^']*'|"[^"$`\\!]*")+) && (?=\S)/
const PLAIN = /^[\w@%+=:,./-]+$/

/** A first word with `=` looks like an assignment to a variable. */
function isPlain(word: string, isProgram: boolean): boolean {
  return PLAIN.test(word) && !(isProgram && word.includes('='))
}

function quoteWord(word: string, isProgram: boolean): string {
  return isPlain(word, isProgram) ? word : quote(word)
}

function quote(word: string): string {
  if (word === '') return "''"
  const parts = word.split("'").map((part) => (part === '' ? '' : `'${part}'`))
  return parts.join(`"'"`)
}
