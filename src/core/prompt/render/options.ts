import { code, type OptionRules, record } from '../../base/options.ts'
/**
 * The titles of the blocks of a prompt; `output_requirement` stands above the demands on the answer, `output` at the
 * end.
 */
export type TitleKey = keyof typeof TITLES

const TITLES = {
  system: 'SYSTEM',
  developer: 'DEVELOPER DIRECTIONS',
  chat_history: 'CHAT HISTORY',
  tools: 'TOOLS',
  action_results: 'ACTION RESULTS',
  info: 'INFO',
  instruct: 'INSTRUCT',
  examples: 'EXAMPLES',
  input: 'INPUT',
  output_requirement: 'OUTPUT REQUIREMENT',
  output: 'OUTPUT',
}

const ROLES: Roles = {
  system: 'system',
  developer: 'developer',
  user: 'user',
  assistant: 'assistant',
  _: 'assistant',
}

/** The names of the roles; `_` stands for every role that is not listed. */
export type Roles = { readonly [role: string]: string }

export interface PromptWarning {
  readonly code: 'skipped_part' | 'near_slot'
  readonly message: string
  /** The type of the part that was left out, or the key. */
  readonly subject: string
}

export interface RenderOptions {
  /** Other titles of the parts of a prompt. */
  readonly titles?: Partial<Record<TitleKey, string>>
  /** Other names of the roles. */
  readonly roles?: Roles
  /** Called for content that could not be shown. */
  readonly onWarning?: (warning: PromptWarning) => void
}

export const RENDER: OptionRules<RenderOptions> = { titles: record, roles: record, onWarning: code }

/** The options with all defaults filled in. */
export interface Rendering {
  readonly titles: Readonly<Record<TitleKey, string>>
  readonly roleOf: (role: string) => string
  readonly warn: (warning: PromptWarning) => void
}

export function renderingOf({ titles, roles, onWarning }: RenderOptions): Rendering {
  const names = new Map([...Object.entries(ROLES), ...Object.entries(roles ?? {})])
  return {
    titles: { ...TITLES, ...titles },
    roleOf: (role) => names.get(role) ?? names.get('_') ?? role,
    warn: onWarning ?? (() => undefined),
  }
}

export function skippedPart(type: string, why: string): PromptWarning {
  return { code: 'skipped_part', subject: type, message: `A part of type "${type}" was left out: ${why}.` }
}
