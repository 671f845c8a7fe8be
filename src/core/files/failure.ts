import { ConflictError, DeniedError, InputError, NotFoundError } from '../base/error.ts'

/** The operations on a file, as grants name them: `file.<operation>:<path>`. */
export const OPERATIONS = ['list', 'read', 'write', 'delete'] as const
export type FileOperation = (typeof OPERATIONS)[number]

export function invalidPath(given: unknown): InputError {
  const path = shown(given)
  const message = `Invalid logical path: ${path}. A path begins with "/" and has no "..", "//", "*", "?", "\\" or control characters.`
  return new InputError('invalid_input', message, { details: { path } })
}

export function invalidArgument(name: string, value: unknown, hint: string): InputError {
  return new InputError('invalid_input', `Invalid argument '${name}' (value=${shown(value)}): ${hint}`)
}

export function denied(operation: FileOperation, path: string, reason: string): DeniedError {
  const message = `Access denied for operation '${operation}' on path ${path}: ${reason}.`
  return new DeniedError('denied', message, { details: { operation, path } })
}

export function fileNotFound(path: string, hint = ''): NotFoundError {
  return new NotFoundError('not_found', `Path not found: ${path}${hint}`, { details: { path } })
}

export function conflict(path: string, hint: string): ConflictError {
  return new ConflictError('conflict', `Conflict detected for path: ${path}. ${hint}`, { details: { path } })
}

export const NO_DIRECTORY = '. It is not a directory. If it is a file, read it instead.'
export const IS_DIRECTORY = '. It is a directory: list it instead.'

/** Shortens the value, because anybody may have written it. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? typeof value)
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN).toWellFormed()}…`
}

const MOST_SHOWN = 200
