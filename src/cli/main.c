#include <paceline.h>

int main(int argc, char **argv)
{
    return pl_app_main(argc, argv, NULL);
}
