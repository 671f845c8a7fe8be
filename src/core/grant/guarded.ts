import { foldedName } from '../base/folded-name.ts'
import type { Layer } from './grant.ts'
import { matchPath } from './match.ts'
import type { Request } from './request.ts'
import { readRule } from './rule.ts'
import { readWords, splitPlace } from './words.ts'

/**
 * The name for which a rule must be there before a file may be written or deleted; undefined where any rule will do. Whoever
 * writes below `.git` decides which programs git runs, and so does who writes a `.gitconfig` that a repository includes.
 */
export function guardedName({ domain, name }: Request): string | undefined {
  if (domain !== 'file.write' && domain !== 'file.delete') return undefined
  if (!SUSPECT.test(name)) return undefined
  return name
    .split('/')
    .map(plainName)
    .find((segment) => GUARDED.has(segment))
}

/** Most paths are none of these, whatever their spelling. */
const SUSPECT = /g.*i.*t|[^\x20-\x7e]/i
const GUARDED: ReadonlySet<string> = new Set(['.git', '.gitconfig'])

/** As systems read a name that ignore case, marks of no width, and what stands behind a name of Windows. */
export function plainName(segment: string): string {
  const [first = ''] = foldedName(segment).split(':')
  const plain = first.replace(/[ .]+$/, '')
  return plain === 'git~1' ? '.git' : plain
}

/** The folder or file of that name in the path: `/workspace/.git`. */
export function guardedPlace({ name }: Request): string {
  const segments = name.split('/')
  return segments.slice(0, segments.findIndex((segment) => GUARDED.has(plainName(segment))) + 1).join('/')
}

/** True where a rule of the layer that allows or asks for the request has one of the names as a segment of its path. */
export function hasNamed({ allow, ask }: Layer, request: Request, names: readonly string[]): boolean {
  return [allow, ask].some((rules) => rules.some((rule) => isNaming(rule, request, names)))
}

/** True where every layer that limits files or programs names one of the names, and one layer does in any case. */
export function isNamed(layers: readonly Layer[], request: Request, names: readonly string[]): boolean {
  const named = layers.map((layer) => hasNamed(layer, request, names))
  return named.includes(true) && layers.every((layer, at) => named[at] === true || isUnlimited(layer))
}

/** True where the rule matches the request, and one of the names is a segment of its pattern. */
export function isNaming(rule: string, { domain, name }: Request, names: readonly string[]): boolean {
  const { domain: own, pattern, trouble } = readRule(rule)
  if (trouble !== null || (own !== domain && own !== 'file.*')) return false
  return pattern.split('/').some((segment) => names.includes(plainName(segment))) && matchPath(pattern, name)
}

/** True for a layer that limits neither files nor programs: it says nothing about what git runs. */
export function isUnlimited({ allow }: Layer): boolean {
  return allow.includes('file.*:**') && allow.includes('exec:*')
}

/**
 * True where a rule with a star covers the line as well. Of git it covers everyday commands and those that the rule names, and no
 * line with a word that names a program to start, or a file to write anywhere: a person who writes `git *` thinks of none of these.
 */
export function isCoveredBy(rule: string, { domain, name }: Request): boolean {
  if (domain !== 'exec' || !name.includes('git')) return true
  const words = readWords(splitPlace(name).rest)
  if (words === undefined) return false
  const at = words.findIndex((word) => /(?:^|[/\\])git(?:\.exe)?$/i.test(word))
  if (at === -1) return true
  const rest = words.slice(at + 1)
  const command = rest.find((word) => !word.startsWith('-')) ?? ''
  const isEveryday = EVERYDAY.test(command)
  if (!isEveryday && (STARTER.test(command) || !rule.split(/[\s:'"]+/).includes(command))) return false
  return !rest.some((word) => isOpening(word) || (isEveryday ? /^-\w*O/ : /^-\w*[oOux]/).test(word))
}

/**
 * Git takes the beginning of a long option for the whole of it. Short options stand together in one word, and what stands behind
 * them belongs to the last: `-nOless`, `-qu/bin/prog`.
 */
function isOpening(word: string): boolean {
  if (!word.startsWith('--')) return /^-[cCoOx]/.test(word)
  const [option = ''] = word.slice(2).split('=')
  return option !== '' && OPENING.some((name) => name.startsWith(option) || option.startsWith(name))
}

const OPENING =
  'config-env exec ext-diff git-dir no-index open- output receive-pack textconv upload-pack work-tree'.split(' ')

/** Commands that start programs, whatever their options are. */
const STARTER = /^(?:bisect|difftool|filter-branch|mergetool|rebase|submodule)$/

/** Commands that write in the repository alone, and change no setting of it: other settings name programs. */
const EVERYDAY =
  /^(?:|add|blame|branch|cat-file|checkout|cherry-pick|clean|commit|describe|diff|fetch|grep|log|ls-(?:files|remote|tree)|merge|mv|pull|push|reflog|remote|reset|restore|rev-parse|revert|rm|shortlog|show|stash|status|switch|tag)$/
