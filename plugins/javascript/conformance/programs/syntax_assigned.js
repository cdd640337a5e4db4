let a = 1;
1 = a;
