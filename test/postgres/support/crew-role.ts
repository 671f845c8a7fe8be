/** What a process of a fault test is to do: see `programs/crew.ts`. */
export interface CrewRole {
  /** How many jobs there are in all. */
  readonly jobs: number
  /** It begins the jobs, answers for the person who is asked, and cancels. Else it only works along. */
  readonly begins: boolean
  /** The cancels of so many jobs are not measured: the first ones find processes that compile their code. */
  readonly warmUp: number
  /** How many jobs it has under way at once. */
  readonly width: number
  /** How many nodes it runs at once. */
  readonly workers: number
  /** How many trees it reads while they go on. */
  readonly reads: number
  readonly leaseMs: number
  /** How often it looks for all that is due. */
  readonly sweepMs: number
  /** How far its clock is ahead. */
  readonly aheadMs: number
}

export const CREW: CrewRole = {
  jobs: 20,
  begins: true,
  warmUp: 0,
  width: 20,
  workers: 16,
  reads: 2,
  leaseMs: 1_500,
  sweepMs: 200,
  aheadMs: 0,
}
