/**
 * For what must not wait, where the wrong way would wait for longer: for the grace of 5 s, for a program that sleeps, for ever.
 * On a machine that is busy with other things even an answer at once may take seconds.
 */
export declare const PROMPTLY_MS = 4000
/**
 * Starts a watch for what must not take long to work out. It gives the milliseconds of the clock or of the processor, whichever
 * are less: what other programs take of a busy machine does not count, nor do threads of ours that work side by side.
 */
export declare function watchWork(): () => number
