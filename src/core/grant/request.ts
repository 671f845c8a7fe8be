// Requests: what somebody wants to do, in the one form that rules are matched with.
//
// Owns:      the functions that make a request for a program, host, secret, file, tool, agent or model, and its text for people.
// Called by: whoever is about to act (`tool`, `tools`, `model`, `delegation`) makes a request from the value it will use, and
//            passes it to `decide`.
// Must stay true (I11):
//   - A request is made here only, from the very value that is then executed; the caller takes that value back from it.
//   - Its name can be read in one way only: no two actions share a name, and none looks like another to people.
//   - What cannot be read becomes a request that no rule allows.

import { InputError, messageOf } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { canonicalJson, type Json } from '../base/json.ts'
import { list, type OptionRules, orJust, readOptions, text } from '../base/options.ts'
import { fingerprint, shownWords } from '../base/secrets/command-secrets.ts'
import { isVisible, visible } from '../base/text.ts'
import { plainHost, wholeAddress } from './host.ts'
import { splitRule } from './rule.ts'
import {
  keyOfPlace,
  keyOfWords,
  placeWords,
  plainProgram,
  quoteWords,
  readWords,
  showPlace,
  showWords,
  splitPlace,
} from './words.ts'

/**
 * An action that somebody wants to take, in the form that rules match. Made here only, from the very value that is then used:
 * code that runs a program takes `argv` from the decided request, code that reaches a host takes its `url` (I11).
 */
export interface Request {
  readonly domain: string
  /** An unambiguous text: it can be read in one way only. */
  readonly name: string
  /** The text that patterns match, where that is not the name. */
  readonly key?: string | undefined
  /** The action without its place: a rule that denies or asks for it anywhere applies here too. */
  readonly anywhere?: string | undefined
  /** The action without parts that change nothing about it: a rule that matches this applies too. */
  readonly plain?: string | undefined
  /** The text that people and the store see, where the name holds secrets or invisible characters. */
  readonly shown?: string | undefined
  /** A hash of the request's content, where that may change or is not shown whole: an answer holds for this version only. */
  readonly version?: string | undefined
  readonly [requestMark]: typeof MADE
}

/** The start of a program. `name` is its whole command line, with the folder it runs in where that is not its agent's own. */
export interface ProgramRequest extends Request {
  readonly domain: 'exec'
  readonly argv: readonly [program: string, ...args: string[]]
  /** Variables that it gets in its environment, beside those in `argv`: they are part of the name. */
  readonly variables: Readonly<Record<string, string>>
}

/** A variable that a definition sets for a program. */
export interface ProgramVariable {
  readonly name: string
  readonly value: string
  /**
   * `secret`: only a fingerprint of its value is decided, shown and kept. `data`: it cannot change what the program does. Both
   * are handed over in the environment, where other users of the machine cannot read them. `filled`: the value is a template,
   * and whoever starts the program hands over what it stands for.
   */
  readonly kind: 'secret' | 'data' | 'filled' | 'other'
}

export interface ProgramOptions {
  /** Texts to hide. */
  readonly secrets?: readonly string[]
  /** Where it runs, if that is not the folder its agent works in: there the same words may do something else. */
  readonly folder?: string | null
  /** The variables that its definition sets. Rules that deny the program without them apply too. */
  readonly variables?: readonly ProgramVariable[]
}

/** Access to a host. */
export interface HostRequest extends Request {
  readonly domain: 'net'
  readonly url: string
  /** True where the name holds a secret: nobody is shown it before that secret is allowed. */
  readonly holdsSecret: boolean
}

/** An operation on a file. */
export interface FileRequest extends Request {
  readonly domain: `file.${FileOperation}`
}

type FileOperation = 'list' | 'read' | 'write' | 'delete'

const PROGRAM: OptionRules<ProgramOptions> = { secrets: list, folder: orJust(null, text), variables: list }

/** No operating system accepts a longer command line. */
const MOST_CHARACTERS = 2_000_000

const requestMark: unique symbol = Symbol('request')
const MADE = true as const
const UNREADABLE = 'unreadable'

/** Throws an InputError for words that cannot start a program. */
export function programRequest(given: readonly string[], options: ProgramOptions = {}): ProgramRequest {
  const {
    secrets = [],
    folder = null,
    variables = NONE,
  } = readOptions('programRequest(argv, options)', options, PROGRAM)
  const [program = '', ...args] = given.map((word) => String(word).toWellFormed())
  if (program === '' || program.startsWith('-')) throw invalid(`${JSON.stringify(program)} is not a name of a program.`)
  const bare = [plainProgram(program), ...args] as const
  const words = decidedWords(bare, variables)
  const length = words.reduce((sum, word) => sum + word.length + 1, -1)
  if (length > MOST_CHARACTERS)
    throw invalid(`A command line has at most ${MOST_CHARACTERS} characters, not ${length}.`)
  if ([...words, ...variables.map(({ value }) => value)].some((word) => word.includes('\0')))
    throw invalid('A command line cannot hold a NUL character.')
  const place = folder === null ? '' : placeWords(folder)
  const name = `${place}${quoteWords(words)}`
  const shown = `${folder === null ? '' : showPlace(folder)}${showWords(shownWords(words, secrets))}`
  const keyOf = (line: readonly string[]) => `${folder === null ? '' : keyOfPlace(folder)}${keyOfWords(line)}`
  const plain = variables.filter(({ kind }) => kind !== 'data')
  return Object.freeze({
    domain: 'exec',
    name,
    key: keyOf(words),
    ...(plain.length === variables.length ? {} : { plain: keyOf(decidedWords(bare, plain)) }),
    ...(folder === null && variables.length === 0 ? {} : { anywhere: keyOfWords(bare) }),
    ...hidden(name, shown, variables),
    argv: Object.freeze(decidedWords(bare, ofKind(variables, 'other'))),
    variables: Object.freeze(
      Object.fromEntries(ofKind(variables, 'secret', 'data').map(({ name, value }) => [name, value])),
    ),
    [requestMark]: MADE,
  })
}

type Words = readonly [program: string, ...args: string[]]

/** The words of a program with the variables that its definition sets, as they are decided: a secret by its fingerprint. */
export function decidedWords(program: Words, variables: readonly ProgramVariable[]): Words {
  if (variables.length === 0) return program
  const set = variables.map(({ name, value, kind }) => {
    return `${name}=${kind === 'secret' && value !== '' ? fingerprint(value) : value}`.toWellFormed()
  })
  return ['env', ...set, ...program]
}

function ofKind(variables: readonly ProgramVariable[], ...kinds: readonly ProgramVariable['kind'][]) {
  return variables.filter(({ kind }) => kinds.includes(kind))
}

const NONE: readonly ProgramVariable[] = []

/** Copies the request with the data that goes along with it: an answer holds for exactly that data. */
export function withPayload<R extends Request>(request: R, handed: Json): R {
  return Object.freeze({ ...request, version: sha256(canonicalJson([request.version ?? null, handed])) })
}

/** Throws an InputError for an address that has no host. */
export function hostRequest(address: string | URL, options: { readonly holdsSecret?: boolean } = {}): HostRequest {
  const given = String(address)
  const name = plainHost(given)
  if (name === undefined) throw invalid(`${JSON.stringify(given.slice(0, 200))} has no host.`)
  const url = wholeAddress(given)
  const { holdsSecret = false } = options
  return Object.freeze({ domain: 'net', name, url, holdsSecret, [requestMark]: MADE })
}

/** A secret of this process, by its name, that becomes a part of what a definition names. */
export function secretRequest(name: string): Request {
  return { domain: 'secret', name, [requestMark]: MADE }
}

/** The path is a logical one, as the file domain has read it. */
export function fileRequest(operation: FileOperation, { text }: { readonly text: string }): FileRequest {
  return { domain: `file.${operation}`, name: text, [requestMark]: MADE }
}

export function toolRequest(name: string, version?: string): Request {
  return { domain: 'tool', name, version, [requestMark]: MADE }
}

export function agentRequest(name: string): Request {
  return { domain: 'agent', name, [requestMark]: MADE }
}

export function modelRequest(name: string): Request {
  return { domain: 'model', name, [requestMark]: MADE }
}

/**
 * Reads a request from a text, such as `net:example.com` or `exec:git status`. A command line with shell syntax becomes one
 * word. A text that cannot be read becomes a request that no rule allows.
 */
export function readRequest(text: string): Request {
  const { domain, pattern: name } = splitRule(text)
  try {
    if (domain === 'exec') return readProgram(name)
    if (domain === 'net') return hostRequest(name)
  } catch (error) {
    return unreadable(messageOf(error))
  }
  return { domain, name, [requestMark]: MADE }
}

/** A request that no rule matches. */
export function unreadable(why: string): Request {
  return { domain: UNREADABLE, name: why.replace(/\.$/, ''), [requestMark]: MADE }
}

/**
 * The request as people see it and stores keep it: `exec:git status`. The one way to show a request. A name with invisible
 * characters is written as JSON, so no two requests look alike.
 */
export function requestText({ domain, name, shown }: Request): string {
  return `${visible(domain)}:${shown ?? shownName(domain, name)}`
}

function shownName(domain: string, name: string): string {
  if (domain === UNREADABLE) return visible(name)
  return isVisible(name) && !name.startsWith('"') ? name : visible(JSON.stringify(name))
}

export function isRequest(value: unknown): value is Request {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, requestMark)
}

export function isProgramRequest(request: Request): request is ProgramRequest {
  return request.domain === 'exec'
}

export function isHostRequest(request: Request): request is HostRequest {
  return request.domain === 'net'
}

function readProgram(text: string): ProgramRequest {
  const { folder, rest } = splitPlace(text)
  return programRequest(wordsIn(rest), { folder })
}

function wordsIn(text: string): readonly string[] {
  const words = readWords(text)
  return words !== undefined && words.length > 0 && !/^\s|\s$/.test(text) ? words : [text]
}

/** Binds the answer to all of it, although only a part is shown. */
function hidden(
  name: string,
  shown: string,
  variables: readonly ProgramVariable[],
): Pick<Request, 'shown' | 'version'> {
  const secrets = ofKind(variables, 'secret').map((one) => [one.name, one.value])
  if (secrets.length > 0) return { shown, version: sha256(canonicalJson([name, secrets])) }
  return shown === name ? {} : { shown, version: sha256(name) }
}

function invalid(message: string): InputError {
  return new InputError('invalid_input', message)
}
