import path from 'node:path'
import { isLegateError } from '../../core/base/error.ts'
import type { Keeper } from '../../core/files/files.ts'
import { noticesOf, refuseFile } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'
import { Lines, type Segment, segmentsOf, tagName, templateTokens } from './tags.ts'

const MOST_FILES = 100
const MOST_CHARACTERS = 1_000_000
const MOST_MARKS = 20_000
const WITH_FILES: ReadonlySet<string> = new Set(['include', 'extends', 'import', 'from'])

/**
 * Reads every file that a template includes, directly or not, by the names written there. Names are relative to the
 * folder of the recipe and cannot leave it, not even through links; files that rules withhold count as missing.
 */
export async function readIncludes(text: string, file: string, isKept?: Keeper): Promise<ReadonlyMap<string, string>> {
  const folder = path.dirname(file)
  const found = new Map<string, string>()
  let characters = 0
  const open = namesIn(text).map((name) => ({ ...name, from: file }))
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { name, line, from, isOptional } = next
    if (found.has(name)) continue
    if (found.size >= MOST_FILES) {
      throw refuseFile({ code: 'include', message: `more than ${MOST_FILES} files are included`, line }, from)
    }
    checkName(name, line, from)
    const included = await readIncluded(name, { folder, from, line, isKept })
    if (included === undefined && !isOptional) throw notFound(name, line, from)
    if (included === undefined) continue
    checkMarks(included, path.join(folder, name))
    characters += included.length
    if (characters > MOST_CHARACTERS) {
      throw refuseFile({ code: 'include', message: 'the included files have more than 1 MB together', line }, from)
    }
    found.set(name, included)
    for (const inner of namesIn(included)) open.push({ ...inner, from: path.join(folder, name) })
  }
  return found
}

/** Throws a RecipeError for a template with so many marks that parsing takes too long. */
export function checkMarks(text: string, file: string): void {
  let marks = 0
  for (const { index } of text.matchAll(/\{[{%#]/g)) {
    if (++marks <= MOST_MARKS) continue
    const message = `more than ${MOST_MARKS} template marks, such as {{ or {%`
    throw refuseFile({ code: 'template', message, line: new Lines(text).at(index), hint: 'Write fewer of them.' }, file)
  }
}

interface IncludedName {
  readonly name: string
  readonly line: number
  /** Whether it is one of several names, or may be missing. */
  readonly isOptional: boolean
}

function notFound(name: string, line: number, file: string): Error {
  const hint = 'Name a file in the folder of the recipe, in quotes.'
  return refuseFile({ code: 'include', message: `template not found: there is no file "${name}"`, line, hint }, file)
}

function namesIn(text: string): IncludedName[] {
  const lines = new Lines(text)
  return segmentsOf(text)
    .filter((segment) => segment.kind === 'tag' && WITH_FILES.has(tagName(segment)))
    .flatMap((segment) => {
      const isOptional = /\bignore\s+missing\b/.test(segment.inner) || segment.inner.includes('[')
      return stringsIn(segment).map((name) => ({ name, line: lines.at(segment.start), isOptional }))
    })
}

function stringsIn({ inner }: Segment): string[] {
  return templateTokens(inner)
    .filter(({ kind }) => kind === 'string')
    .map(({ text }) => text.slice(1, -1).replace(/\\(.)/gs, '$1'))
}

function checkName(name: string, line: number, file: string): void {
  const parts = name.split(/[\\/]/)
  const isInside = !path.isAbsolute(name) && !/^[a-z]:/i.test(name) && !parts.includes('..') && !name.includes('\0')
  if (isInside && name !== '') return
  const hint = 'Name a file in the folder of the recipe or below it, such as "parts/intro.yaml".'
  throw refuseFile({ code: 'include', message: `"${name}" is outside the folder of the recipe`, line, hint }, file)
}

async function readIncluded(
  name: string,
  {
    folder,
    from,
    line,
    isKept,
  }: { readonly folder: string; readonly from: string; readonly line: number; readonly isKept: Keeper | undefined },
): Promise<string | undefined> {
  try {
    return await readText(path.join(folder, name), { inside: folder, isKept, hasOneName: true })
  } catch (error) {
    if (!isLegateError(error, 'recipe')) throw error
    const [notice] = noticesOf(error)
    if (notice?.message.endsWith('there is no such file') === true) return undefined
    const message = `"${name}" cannot be included: ${notice?.message ?? error.message}`
    throw refuseFile({ code: 'include', message, line, ...(notice?.hint == null ? {} : { hint: notice.hint }) }, from)
  }
}
