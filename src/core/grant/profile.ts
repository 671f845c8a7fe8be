import { DefinitionError } from '../base/error.ts'
import { checkGrant, EVERYTHING, type Grant, type Layer, narrowingLayer } from './grant.ts'

/** Named layers: the most that a child may use, whatever else it is granted. */
export type Profiles = Readonly<Record<string, Grant>>

export const BUILT_IN_PROFILES: Profiles = Object.freeze({
  full: { use: EVERYTHING },
  minimal: { use: ['model:*'] },
  memory_only: { use: ['model:*', 'tool:memory_*'] },
  skills_only: { use: ['model:*', 'tool:skills_*'] },
})

/** The layer of a profile. Refuses an unknown name: a misspelt restriction must not pass for none. */
export function profileLayer(name: string, profiles: Profiles): Layer {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (profile === undefined) {
    const known = Object.keys(profiles).join(', ')
    throw new DefinitionError('definition', `There is no profile "${name}". There are: ${known}.`)
  }
  return narrowingLayer(`the profile ${name}`, profile)
}

/** Joins the built-in profiles with these; none may be redefined. */
export function withProfiles(own: Profiles, where: string): Profiles {
  for (const [name, profile] of Object.entries(own)) {
    if (Object.hasOwn(BUILT_IN_PROFILES, name)) {
      throw new DefinitionError('definition', `${where}: the profile "${name}" is built in. Give yours another name.`)
    }
    checkGrant(profile, `${where}, profiles.${name}`)
  }
  return { ...BUILT_IN_PROFILES, ...own }
}
