import { isVisible, visible } from '../base/text.ts'

/**
 * The words of a command line as one text that can be read in one way only: plain words as they are, all others in quotes.
 * `readWords` gives the same words back, and so does a shell.
 */
export function quoteWords(words: readonly string[]): string {
  return words.map((word, at) => quoteWord(word, at === 0)).join(' ')
}

/**
 * The same for people: a word with characters that cannot be seen is written as `$'one\ntwo'`, in which a backslash stands
 * before each of them, and before each backslash and quote. Nothing is left out, and no two command lines look the same.
 */
export function showWords(words: readonly string[]): string {
  return words
    .map((word, at) => (isVisible(word) ? quoteWord(word, at === 0) : `$'${visible(word.replace(/[\\']/g, '\\$&'))}'`))
    .join(' ')
}

/**
 * The words of a text in which a shell would find nothing but words. Undefined for all others: those have variables, pipes,
 * redirections, patterns or lists, or their quotes are open.
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
 * A command line as rules are compared with it: its words with a character between them that no word can hold. So `ls *`
 * is about the program `ls`, and never about one whose name begins with `ls` and a space.
 */
export function keyOfWords(words: readonly string[]): string {
  return words.map((word) => word.replaceAll('*', LITERAL_STAR)).join(BETWEEN)
}

/** What stands before the words of a program that runs in another folder: no word of a command line looks like `&&`. */
export function placeWords(folder: string): string {
  return `cd ${quoteWords([folder])} && `
}

/** The same for people. */
export function showPlace(folder: string): string {
  return `cd ${showWords([folder])} && `
}

/** A text that may begin so, and what follows it. */
export function splitPlace(text: string): { readonly folder: string | null; readonly rest: string } {
  const [whole = '', named = ''] = PLACE.exec(text) ?? []
  const [folder = null] = whole === '' ? [] : (readWords(named) ?? [])
  return folder === null ? { folder, rest: text } : { folder, rest: text.slice(whole.length) }
}

/** The same, as rules are compared with it. */
export function keyOfPlace(folder: string): string {
  return `${keyOfWords(['cd', folder])}${BETWEEN}${THEN}${BETWEEN}`
}

/** The same of a rule's pattern: a `*` outside of quotes stands for any text. Undefined where its quotes are open. */
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

/** `cd /workspace/app && make` is about a program in that folder. */
function placedKey(words: readonly string[]): string {
  if (words[0] === 'cd' && words[2] === '&&' && words.length > 3) {
    return [...words.slice(0, 2), THEN, placedKey(words.slice(3))].join(BETWEEN)
  }
  const [program = '', ...args] = words
  return [program.startsWith('*') ? program : plainProgram(program), ...args].join(BETWEEN)
}

/**
 * The name of a program in its one form. One with a slash is a path: without `.`, `..` and `//` inside, and with `./` where
 * it is below the current folder.
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

/** No word has these: a program cannot be given a NUL, and words are well-formed. */
const BETWEEN = '\0'
const LITERAL_STAR = '\ud800'
/** Between a folder and the program that runs there. */
const THEN = '\ud801'

/** Blanks, plain characters, or a text in quotes that means itself. */
const PART = /([ \t]+)|([\w@%+=:,./-]+)|'([^']*)'|"([^"$`\\!]*)"/y
/** A rule is written by people: all but blanks and quotes stands for itself. */
const PATTERN_PART = /([ \t]+)|([^ \t'"]+)|'([^']*)'|"([^"]*)"/y
const PLACE = /^cd ((?:[\w@%+=:,./-]|'[^']*'|"[^"$`\\!]*")+) && (?=\S)/
const PLAIN = /^[\w@%+=:,./-]+$/

/** A first word with `=` looks like a variable that is set. */
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
