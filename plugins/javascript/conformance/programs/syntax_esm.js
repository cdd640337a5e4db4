import fs from 'fs';
let y = ;
