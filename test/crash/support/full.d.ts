/** Are the full figures wanted? They take much longer. */
export declare const isFull: boolean
