/** The task that decides whether an answer is one. */
export const CHECK = 'recipe__check'
/** The task that cleans up after one that was none. */
export const ON_FAILURE = 'recipe__on_failure'

/** Where checks run. */
export interface CheckPlace {
  readonly cwd: string
  /** The same, where a model has chosen it: it is a part of what is decided. */
  readonly folder: string | null
}
