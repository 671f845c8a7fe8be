import { InputError, messageOf } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { canonicalJson, type Json } from '../base/json.ts'
import { int, list, orJust, type Rules, readOptions, text } from '../base/options.ts'
import { shownWords } from '../base/secrets/command-secrets.ts'
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
 * What somebody wants to do, as rules are matched with it. Made here only, from the very value that is then used: whoever
 * runs a program takes `argv` from the request that was decided, whoever reaches a host its `url` (I11).
 */
export interface Request {
  readonly domain: string
  /** It can be read in one way only. */
  readonly name: string
  /** What patterns are compared with, where that is not the name. */
  readonly key?: string | undefined
  /** The same wherever it is done: what forbids it, or asks for it, anywhere holds here too. */
  readonly anywhere?: string | undefined
  /** What people and the store get to see, where the name holds secrets or what cannot be seen. */
  readonly shown?: string | undefined
  /** Of what is asked for, where it may change or is not shown whole: an answer holds for this one. */
  readonly version?: string | undefined
  readonly [requestMark]: typeof MADE
}

/** A program is started. `name` is its whole command line, with the folder it runs in where that is not its agent's own. */
export interface ProgramRequest extends Request {
  readonly domain: 'exec'
  readonly argv: readonly [program: string, ...args: string[]]
}

export interface ProgramOptions {
  /** Texts that are not shown. */
  readonly secrets?: readonly string[]
  /** Where it runs, if that is not the folder its agent works in: the same words do something else there. */
  readonly folder?: string | null
  /** How many words stand before the program that is really meant, such as `env A=b`. What forbids that one holds too. */
  readonly before?: number
}

/** A host is reached. */
export interface HostRequest extends Request {
  readonly domain: 'net'
  readonly url: string
}

/** Something is done with a file. */
export interface FileRequest extends Request {
  readonly domain: `file.${FileOperation}`
}

type FileOperation = 'list' | 'read' | 'write' | 'delete'

const PROGRAM: Rules<ProgramOptions> = { secrets: list, folder: orJust(null, text), before: int(0) }

/** No system takes more. */
const MOST_CHARACTERS = 2_000_000

const requestMark: unique symbol = Symbol('request')
const MADE = true as const
const UNREADABLE = 'unreadable'

/** Throws an InputError for what no program can be started with. */
export function programRequest(given: readonly string[], options: ProgramOptions = {}): ProgramRequest {
  const { secrets = [], folder = null, before = 0 } = readOptions('programRequest(argv, options)', options, PROGRAM)
  const [program = '', ...args] = given.map((word) => String(word).toWellFormed())
  const length = args.reduce((sum, word) => sum + word.length + 1, program.length)
  if (length > MOST_CHARACTERS)
    throw invalid(`A command line has at most ${MOST_CHARACTERS} characters, not ${length}.`)
  if (program === '' || program.startsWith('-')) throw invalid(`${JSON.stringify(program)} is no name of a program.`)
  const argv = Object.freeze([plainProgram(program), ...args] as const)
  if (argv.some((word) => word.includes('\0'))) throw invalid('A command line cannot hold a NUL character.')
  const place = folder === null ? '' : placeWords(folder)
  const name = `${place}${quoteWords(argv)}`
  const shown = `${folder === null ? '' : showPlace(folder)}${showWords(shownWords(argv, secrets))}`
  const whole = keyOfWords(argv)
  const meant = keyOfWords([plainProgram(argv[before] ?? ''), ...argv.slice(before + 1)])
  return Object.freeze({
    domain: 'exec',
    name,
    key: folder === null ? whole : `${keyOfPlace(folder)}${whole}`,
    ...(folder === null && before === 0 ? {} : { anywhere: meant }),
    ...hidden(name, shown),
    argv,
    [requestMark]: MADE,
  })
}

/** The same request, with all that is handed over with it: an answer holds for just that. */
export function withHanded<R extends Request>(request: R, handed: Json): R {
  return Object.freeze({ ...request, version: sha256(canonicalJson([request.version ?? null, handed])) })
}

/** Throws an InputError for an address that has no host. */
export function hostRequest(address: string | URL): HostRequest {
  const given = String(address)
  const name = plainHost(given)
  if (name === undefined) throw invalid(`${JSON.stringify(given.slice(0, 200))} has no host.`)
  const url = wholeAddress(given)
  return Object.freeze({ domain: 'net', name, url, [requestMark]: MADE })
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
 * A request that is given as a text, such as `net:example.com` or `exec:git status`. A command line with more than words in
 * it is one word. What cannot be read is a request that no rule allows.
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

/** No rule is about it. */
export function unreadable(why: string): Request {
  return { domain: UNREADABLE, name: why.replace(/\.$/, ''), [requestMark]: MADE }
}

/**
 * As people see it and as it is stored: `exec:git status`. The one way to show a request. A name with characters that
 * cannot be seen is written as JSON, so no two requests look the same.
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

/** What is not shown is still what an answer is bound to. */
function hidden(name: string, shown: string): Pick<Request, 'shown' | 'version'> {
  return shown === name ? {} : { shown, version: sha256(name) }
}

function invalid(message: string): InputError {
  return new InputError('invalid_input', message)
}
