import path from 'node:path'
import { InputError } from '../../core/base/error.ts'
import type { Keeper } from '../../core/files/files.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { readFrontMatter } from '../dialects/load-agent-file.ts'
import { Fields } from '../text/fields.ts'
import { type Notice, NoticeReport, noticesOf, refuseFile } from '../text/notice.ts'
import { readText, readTextNow } from '../text/read-text.ts'
import type { DiscoveryOptions } from './options.ts'
import { filesBelow, skillPlaces } from './places.ts'

/** Instructions that an agent loads when it needs them, with files beside them. */
export interface Skill {
  readonly name: string
  readonly description: string
  readonly instructions: string
  readonly file: string
  /** Files of the skill, relative to its folder. */
  readonly files: readonly string[]
  /** Names of its arguments, in order. */
  readonly arguments: readonly string[]
}

export interface DiscoveredSkills {
  readonly skills: readonly Skill[]
  readonly notices: readonly Notice[]
}

/** Finds every skill of a project; the nearest of a name is used. */
export async function discoverSkills(options: DiscoveryOptions = {}): Promise<DiscoveredSkills> {
  const skills = new Map<string, Skill>()
  const notices: Notice[] = []
  for (const { folder, inside } of skillPlaces(options)) {
    const files = filesBelow(folder, { isWanted: (name) => name === 'SKILL.md', isDeep: true, inside })
    for (const file of files) {
      const skill = await readSkill(file, notices)
      if (skill !== undefined && !skills.has(skill.name)) skills.set(skill.name, skill)
    }
  }
  return { skills: [...skills.values()], notices }
}

/**
 * Adds the skills that a file starts with to its instructions, whether a person runs the file or an agent delegates to it.
 * One that rules withhold from that agent is not found.
 */
export async function withSkills(
  { instructions, skills, file }: Pick<AgentFile, 'instructions' | 'skills' | 'file'>,
  cwd: string,
  isKept: Keeper = () => false,
): Promise<string> {
  if (skills.length === 0) return instructions
  const found = (await discoverSkills({ cwd })).skills.filter((skill) => !isKept(skill.file))
  const told = skills.map((name) => {
    const skill = found.find((one) => one.name === name)
    if (skill !== undefined) return `# Skill: ${name}\n\n${skill.instructions}`
    const hint = 'Put it into .agents/skills, or remove its name.'
    throw refuseFile({ code: 'not_found', message: `there is no skill \`${name}\``, hint }, file)
  })
  return [instructions, ...told].join('\n\n')
}

/** Hides the files of a skill that rules withhold; undefined if the skill itself is withheld. */
export function visiblePart(skill: Skill, isKept: (place: string) => boolean): Skill | undefined {
  if (isKept(skill.file)) return undefined
  const folder = path.dirname(skill.file)
  return { ...skill, files: skill.files.filter((file) => !isKept(path.join(folder, file))) }
}

/** Reads a file of a skill, requested as `name/path`. It must be in the skill's folder, with links resolved. */
export async function readSkillFile(skill: Skill, relative: string): Promise<string> {
  const folder = path.dirname(skill.file)
  try {
    return await readText(path.join(folder, relative), { inside: folder, hasOneName: true })
  } catch (error) {
    const [notice] = noticesOf(error)
    if (notice?.code !== 'include') throw error
    throw refuseFile(
      { code: 'include', message: `${skill.name}/${relative} resolves outside the skill directory` },
      skill.file,
    )
  }
}

/**
 * Fills arguments into the instructions: `$ARGUMENTS`, `$ARGUMENTS[0]`, `$1`, `$name`; without a placeholder they are
 * appended.
 */
export function skillInstructions({ instructions, arguments: names }: Skill, given: string): string {
  const words = wordsOf(given)
  const places = new Map(names.map((name, at) => [name, at] as const).reverse())
  let isUsed = false
  let length = instructions.length
  const text = instructions.replace(
    /\$ARGUMENTS\[(\d{1,3})\]|\$(ARGUMENTS)\b|\$(\d{1,3})\b|\$([A-Za-z_]\w*)/g,
    (...found) => {
      const [whole, index, all, position, name] = found as (string | undefined)[]
      const at = name === undefined ? Number(index ?? Number(position) - 1) : (places.get(name) ?? -1)
      if (all === undefined && name !== undefined && at === -1) return whole ?? ''
      isUsed = true
      const filled = all === undefined ? (words[at] ?? '') : given
      length += filled.length
      if (length > MOST_FILLED) throw tooLong()
      return filled
    },
  )
  return isUsed || given.trim() === '' ? text : `${text}\n\nARGUMENTS: ${given}`
}

/** The most characters of a skill after its arguments are filled in. */
const MOST_FILLED = 4_000_000

function tooLong(): InputError {
  const message = `The skill with its arguments has more than ${MOST_FILLED} characters: give it less.`
  return new InputError('invalid_input', message)
}

async function readSkill(file: string, notices: Notice[]): Promise<Skill | undefined> {
  try {
    const report = new NoticeReport(file, true)
    const parts = await readFrontMatter(ownText(file), file, report)
    const fields = new Fields(parts?.fields, report)
    const name = parts === undefined ? null : fields.text('name')
    if (parts === undefined || name === null) return undefined
    if (/[/\\]/.test(name)) {
      const finding = {
        code: 'invalid_value',
        message: `the skill "${name}" has a slash in its name`,
        line: fields.lineOf('name'),
      } as const
      throw refuseFile({ ...finding, hint: 'Names have letters, digits and dashes.' }, file)
    }
    notices.push(...report.notices)
    return {
      name,
      description: fields.text('description') ?? '',
      instructions: parts.body,
      file,
      files: filesOf(path.dirname(file)),
      arguments: argumentNames(fields),
    }
  } catch (error) {
    const [notice] = noticesOf(error)
    if (notice === undefined) throw error
    notices.push(notice)
    return undefined
  }
}

/** Reads a SKILL.md; one that links out of its folder does not count. */
function ownText(file: string): string {
  try {
    return readTextNow(file, { inside: path.dirname(file) })
  } catch (error) {
    const [notice] = noticesOf(error)
    if (notice?.code !== 'include') throw error
    const message = 'this SKILL.md is a link that leads out of the folder of the skill'
    throw refuseFile(
      { code: 'include', message, hint: 'Put the file itself there, or make the folder the link.' },
      file,
    )
  }
}

function argumentNames(fields: Fields): readonly string[] {
  if (fields.get('arguments')?.kind === 'list') return fields.texts('arguments') ?? []
  return (fields.text('arguments') ?? '').split(/[\s,]+/).filter((name) => name !== '')
}

/** Lists the files of a skill without those of skills below it. Links must not leave the folder. */
function filesOf(folder: string): string[] {
  const files = filesBelow(folder, { isWanted: () => true, isDeep: true, inside: folder })
  const others = new Set(
    files
      .filter(isSkill)
      .map((file) => path.dirname(file))
      .filter((other) => other !== folder),
  )
  return files
    .filter((file) => !isInOneOf(others, file, folder) && !isSkill(file))
    .map((file) => path.relative(folder, file).split(path.sep).join('/'))
}

function isSkill(file: string): boolean {
  return path.basename(file) === 'SKILL.md'
}

/** Tells whether the file lies in one of these folders, below `top`. */
function isInOneOf(folders: ReadonlySet<string>, file: string, top: string): boolean {
  for (let folder = path.dirname(file); folder.length > top.length; folder = path.dirname(folder)) {
    if (folders.has(folder)) return true
  }
  return false
}

/** Splits text into words; quotes keep spaces together. */
function wordsOf(given: string): string[] {
  return Array.from(given.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g), ([, a, b, c]) => a ?? b ?? c ?? '')
}
