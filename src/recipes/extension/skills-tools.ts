import type { JsonSchema } from '../../core/base/schema/schema.ts'
import type { Keeper } from '../../core/files/files.ts'
import { type Tool, type ToolContext, tool } from '../../core/tool/tool.ts'
import { checkDiscovery, type DiscoveryOptions } from '../discovery/options.ts'
import type { Skill } from '../discovery/skills.ts'

export type SkillsToolName = 'skills_list' | 'skills_load' | 'skills_read'

const NAME: JsonSchema = { type: 'string', minLength: 1, maxLength: 200 }

/** Makes the tools that load skills of the project and the user: instructions that are read when needed. */
export function skillsTools(options: DiscoveryOptions = {}): Record<SkillsToolName, Tool> {
  checkDiscovery('skillsTools()', options)
  return {
    skills_list: tool({
      description: 'Lists the skills there are: instructions for certain kinds of work.',
      input: schema({}, []),
      effect: 'pure',
      execute: async (_, context) => {
        const skills = await openSkills(options, context)
        return skills.map(({ name, description }) => `${name} - ${description}`).join('\n') || 'There are no skills.'
      },
    }) as Tool,
    skills_load: tool({
      description: 'Gives the instructions of a skill. Follow them for the work they are about.',
      input: schema({ name: NAME, arguments: { type: 'string', maxLength: 8_000 } }, ['name']),
      effect: 'pure',
      execute: async (input, context) => {
        const { name, arguments: given = '' } = input as { name: string; arguments?: string }
        const skill = find(name, await openSkills(options, context))
        const { skillInstructions } = await discovery()
        const files = skill.files.length === 0 ? [] : [`Files for skills_read: ${skill.files.slice(0, 100).join(', ')}`]
        return [`# ${skill.name}`, skillInstructions(skill, given), ...files].join('\n\n')
      },
    }) as Tool,
    skills_read: tool({
      description: 'Reads a file that belongs to a skill, by its path there.',
      input: schema({ name: NAME, file: NAME }, ['name', 'file']),
      effect: 'pure',
      execute: async (input, context) => {
        const { name, file } = input as { name: string; file: string }
        const skill = find(name, await openSkills(options, context))
        const { readSkillFile } = await discovery()
        if (skill.files.includes(file)) return readSkillFile(skill, file)
        throw new Error(`${name} has no file ${JSON.stringify(file)}. It has: ${skill.files.join(', ') || 'none'}`)
      },
    }) as Tool,
  }
}

/** Loaded on the first search for a skill. */
const discovery = () => import('../discovery/skills.ts')

function schema(properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema {
  return { type: 'object', properties, required: [...required], additionalProperties: false }
}

/** Lists the skills the agent may see: file rules hide a skill, or single files of it. */
async function openSkills(options: DiscoveryOptions, context: ToolContext): Promise<readonly Skill[]> {
  const { discoverSkills, visiblePart } = await discovery()
  const { skills } = await discoverSkills(options)
  const isKept = keeperOf(context)
  return skills.flatMap((skill) => visiblePart(skill, isKept) ?? [])
}

/** Reads the file rules of a call. A runtime without files, or a tool called by hand, has none. */
function keeperOf(context: Partial<Pick<ToolContext, 'files'>>): Keeper {
  return (place) => context.files?.isKept(place) ?? false
}

function find(name: string, skills: readonly Skill[]): Skill {
  const found = skills.find((skill) => skill.name === name)
  if (found !== undefined) return found
  throw new Error(
    `there is no skill ${JSON.stringify(name)}. There are: ${skills.map((one) => one.name).join(', ') || 'none'}`,
  )
}
